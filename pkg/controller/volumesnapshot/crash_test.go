// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

func TestCrashAnywhereInALife(t *testing.T) {
	retain := func(h *kit.Harness) {
		disk(h)
		h.Put(kit.SnapshotClass(kit.SnapshotClassName, func(c *snapv1.VolumeSnapshotClass) {
			c.DeletionPolicy = snapv1.VolumeSnapshotContentRetain
		}))
	}
	imported := func(h *kit.Harness) {
		disk(h)
		h.Put(kit.NamedContent("old"))
		h.Driver.PutSnapshot("old", kit.VolumeHandle("pv-data"), 1<<30)
	}
	slow := func(h *kit.Harness) { disk(h); h.Driver.ReadyAfter = 3 }
	for name, s := range map[string]kit.Scenario{
		"S95 create":                   {World: disk, Users: []func(*kit.Harness){userTakes("snap")}, Check: wantReady("snap")},
		"S95 create behind":            {World: disk, Users: []func(*kit.Harness){userTakes("snap")}, Check: wantReady("snap"), Lag: 3},
		"S59 create slowly":            {World: slow, Users: []func(*kit.Harness){userTakes("snap")}, Check: wantReady("snap")},
		"S95 create and delete":        {World: disk, Users: []func(*kit.Harness){userTakes("snap"), userDeletes("snap")}, Check: wantNothing},
		"S95 create and delete behind": {World: disk, Users: []func(*kit.Harness){userTakes("snap"), userDeletes("snap")}, Check: wantNothing, Lag: 3},
		"S82 create and delete at once": {World: disk, Users: []func(*kit.Harness){
			func(h *kit.Harness) {
				userTakes("snap")(h)
				h.Driver.Next("CreateSnapshot", kit.Reply{Meanwhile: func() { userDeletes("snap")(h) }})
			},
		}, Meanwhile: userDeletes("snap"), Check: wantNothing},
		"S79 deleted while nobody runs": {World: disk, Users: []func(*kit.Harness){userTakes("snap")}, Meanwhile: userDeletes("snap"), Check: wantNothing},
		"S80 deleted while the outcome is open": {World: func(h *kit.Harness) {
			disk(h)
			h.Driver.Next("CreateSnapshot", kit.Reply{Code: codes.DeadlineExceeded, Text: "slow", Done: true, Times: 2})
		}, Users: []func(*kit.Harness){userTakes("snap")}, Meanwhile: userDeletes("snap"), Check: wantNothing},
		"S69 retain": {World: retain, Users: []func(*kit.Harness){userTakes("snap"), userDeletes("snap")}, Check: func(t testing.TB, h *kit.Harness) {
			if len(h.Driver.Calls("DeleteSnapshot")) > 0 {
				t.Error("a retained snapshot was deleted")
			}
		}},
		"S41 import": {World: imported, Users: []func(*kit.Harness){
			func(h *kit.Harness) { h.Put(kit.Snapshot("data-snapshot", "", kit.FromContent("old"))) },
		}, Check: wantReady("data-snapshot")},
		"S68 import and delete": {World: imported, Users: []func(*kit.Harness){
			func(h *kit.Harness) { h.Put(kit.Snapshot("data-snapshot", "", kit.FromContent("old"))) }, userDeletes("data-snapshot"),
		}, Check: wantNothing},
		"S74 held by others": {World: disk, Users: []func(*kit.Harness){userTakes("snap"), func(h *kit.Harness) {
			for _, c := range kit.All[*kube.Content](h.API) {
				kit.Edit(h.API, kube.KeyOf(c), func(c *kube.Content) { kube.AddFinalizer(c, "example.com/backup") })
			}
			userDeletes("snap")(h)
		}}},
	} {
		s.Program = both
		t.Run(name, func(t *testing.T) { kit.Crash(t, s) })
	}
}
