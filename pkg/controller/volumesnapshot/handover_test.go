// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// handedOver makes a program whose first life is one and whose later lives are another.
func handedOver(first, later func(*kit.Harness)) func(*kit.Harness) {
	begun := map[*kit.Harness]bool{}
	return func(h *kit.Harness) {
		if !begun[h] {
			begun[h] = true
			first(h)
			return
		}
		later(h)
	}
}

// TestHandover (S95): the incumbents stop after each of their effects and we go on, and the other way round. What either
// leaves is all that the other needs; in the end everything is ready, and later nothing is left.
func TestHandover(t *testing.T) {
	checked := func(name string) func(*kit.Harness) {
		return func(h *kit.Harness) {
			wantReady(name)(h.T, h)
			userDeletes(name)(h)
		}
	}
	slow := func(h *kit.Harness) { disk(h); h.Driver.ReadyAfter = 2 }
	open := func(h *kit.Harness) {
		disk(h)
		h.Driver.Next("CreateSnapshot", kit.Reply{Code: codes.DeadlineExceeded, Text: "slow", Done: true, Times: 2})
	}
	imported := func(h *kit.Harness) {
		disk(h)
		h.Put(kit.NamedContent("old"))
		h.Driver.PutSnapshot("old", kit.VolumeHandle("pv-data"), 1<<30)
	}
	give := func(h *kit.Harness) { h.Put(kit.Snapshot("data-snapshot", "", kit.FromContent("old"))) }
	retain := func(h *kit.Harness) {
		disk(h)
		h.Put(kit.SnapshotClass(kit.SnapshotClassName, func(c *snapv1.VolumeSnapshotClass) { c.DeletionPolicy = snapv1.VolumeSnapshotContentRetain }))
	}
	for name, s := range map[string]kit.Scenario{
		"a life":            {World: disk, Users: []func(*kit.Harness){userTakes("snap"), checked("snap")}, Check: wantNothing},
		"a slow life":       {World: slow, Users: []func(*kit.Harness){userTakes("snap"), checked("snap")}, Check: wantNothing},
		"an open outcome":   {World: open, Users: []func(*kit.Harness){userTakes("snap"), checked("snap")}, Check: wantNothing},
		"deleted meanwhile": {World: open, Users: []func(*kit.Harness){userTakes("snap")}, Meanwhile: userDeletes("snap"), Check: wantNothing},
		"an import":         {World: imported, Users: []func(*kit.Harness){give, checked("data-snapshot")}, Check: wantNothing},
		"retained": {World: retain, Users: []func(*kit.Harness){userTakes("snap"), checked("snap"), func(h *kit.Harness) {
			if n := len(h.Driver.Calls("DeleteSnapshot")); n > 0 {
				h.T.Errorf("deleted %d times", n)
			}
			kit.Remove[*kube.Content](h.API, kube.KeyOf(kit.All[*kube.Content](h.API)[0]))
		}}},
	} {
		t.Run("to us/"+name, func(t *testing.T) {
			s.Program = handedOver(incumbents, both)
			kit.Crash(t, s)
		})
		t.Run("from us/"+name, func(t *testing.T) {
			s.Program = handedOver(both, incumbents)
			kit.Crash(t, s)
		})
	}
}
