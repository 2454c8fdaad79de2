// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestCrashWhenASnapshotGoesUnderTheWork (S77, S95): the snapshot went although our finalizers were acknowledged, and the
// program dies anywhere around that. The next one has not seen the end of the snapshot.
func TestCrashWhenASnapshotGoesUnderTheWork(t *testing.T) {
	for name, lag := range map[string]int{"at once": 0, "behind": 3} {
		t.Run(name, func(t *testing.T) {
			kit.Crash(t, kit.Scenario{Program: both, Lag: lag, Check: wantNothing, World: func(h *kit.Harness) {
				disk(h)
				h.API.Script(kit.Rule{Verb: "create", Resource: "volumesnapshotcontents", Times: 1, Meanwhile: func() { tearOut(h) }})
			}, Users: []func(*kit.Harness){userTakes("snap")}})
		})
	}
}

// TestLeftWhileNobodyWasThere: the snapshot was torn out, and replaced by a namesake, while no program ran. For sidecars of
// others the content is marked too.
func TestLeftWhileNobodyWasThere(t *testing.T) {
	for _, bind := range []Bind{Own, All} {
		h := kit.New(t)
		disk(h)
		begin := func() {
			_, room := binder(h, bind)
			if bind == Own {
				h.Add(room, taker(h))
				return
			}
			h.Add(room)
		}
		begin()
		userTakes("snap")(h)
		h.Settle()
		old := only(t, h)
		h.Restart()
		tearOut(h)
		h.Put(kit.Snapshot("snap", "", kit.FromContent("nothing"), func(s *snapv1.VolumeSnapshot) { s.UID = "new" }))
		begin()
		h.Settle()
		left, there := kit.Read[*kube.Content](h.API, kube.KeyOf(old))
		switch {
		case bind == Own && (there || len(h.Driver.Inventory()) != 1):
			t.Errorf("left: %v\n%s", h.State(), h.Trace())
		case bind == All && (!there || left.DeletionTimestamp == nil || left.Annotations[wellknown.AnnBeingDeleted] != "yes"):
			t.Errorf("a sidecar of others is not told: %+v\n%s", left, h.Trace())
		}
	}
}
