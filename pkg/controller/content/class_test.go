// SPDX-License-Identifier: Apache-2.0

package content

import (
	"fmt"
	"strings"
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

func className() kube.Key { return kube.Key{Name: kit.SnapshotClassName} }

// TestClassOfAnotherDriverTakesTheName: only the content's own driver counts once there is something to delete.
func TestClassOfAnotherDriverTakesTheName(t *testing.T) {
	h, _ := start(t)
	c := bound(h)
	h.Settle()
	kit.Edit(h.API, className(), func(class *snapv1.VolumeSnapshotClass) { class.Driver = "other" })
	h.Settle()
	deleteBoth(h, c)
	h.Settle()
	if now(h, c) != nil || len(h.Driver.Inventory()) != 1 {
		t.Errorf("left: %v\n%s", h.State(), h.Trace())
	}
}

// TestClassOfAnotherDriverGoes: what waited goes on when the class becomes ours, without waiting for a timer.
func TestClassOfAnotherDriverGoes(t *testing.T) {
	for name, goes := range map[string]func(*kit.Harness){
		"edited": func(h *kit.Harness) {
			kit.Edit(h.API, className(), func(class *snapv1.VolumeSnapshotClass) { class.Driver = kit.DriverName })
		},
		"replaced": func(h *kit.Harness) {
			kit.Remove[*snapv1.VolumeSnapshotClass](h.API, className())
			h.Put(kit.SnapshotClass(kit.SnapshotClassName))
		},
	} {
		h, _ := start(t)
		kit.Edit(h.API, className(), func(class *snapv1.VolumeSnapshotClass) { class.Driver = "other" })
		c := bound(h)
		h.Horizon = 0
		h.Settle()
		if len(h.Driver.Calls()) > 0 {
			t.Fatalf("%s: S51 taken with a class of others", name)
		}
		if says := fmt.Sprint(h.Recorder.Events()); !strings.Contains(says, `is of driver "other", but`) {
			t.Errorf("%s: nobody says what it waits for: %s", name, says)
		}
		goes(h)
		h.Settle()
		if got := now(h, c); got.Status == nil || !*got.Status.ReadyToUse || got.Status.Error != nil {
			t.Errorf("%s: %+v\n%s", name, got.Status, h.Trace())
		}
	}
}
