// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"testing"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/source"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestAnotherNodeIsMakingIt: the grant of a claim is withdrawn while another node makes its volume, which only the process there knows. Catches one
// that takes the protection off under it, and one for which a claim without a grant holds the snapshot for ever.
func TestAnotherNodeIsMakingIt(t *testing.T) {
	for name, grants := range map[string]func(string) provision.Grants{"granted": allowing, "withdrawn": denying} {
		t.Run(name, func(t *testing.T) {
			h := kit.New(t)
			snap := kit.With(kit.Snapshot("snap", "source"), kit.Finalizers(wellknown.FinalizerSnapshotAsSource), kit.Deleted)
			content := kit.Content(snap, "handle", kit.Taken("s"))
			kit.BoundContent(content.Name)(snap)
			claim := stranger(wellknown.KindVolumeSnapshot, wellknown.SnapshotGroup, "snap")
			kit.OnNode("n1")(claim)
			h.Put(snap, content, claim)
			c := source.New(*source.NewOptions(), source.Deps{
				Client: h.API, DriverName: kit.DriverName, Clock: h.Clock, Claims: h.Stores.Claims, Snapshots: h.Stores.Snapshots, IsInUse: idle,
				RetryStart: h.RetryStart, RetryMax: h.RetryMax, Local: provision.Local{Node: "n2"}, GrantsOf: grants,
			})
			h.Add(kit.Room{Name: "snapshots", Reconcile: c.ReconcileSnapshot, Keys: kit.Feeds(kit.On(c.SnapshotsOfClaim), kit.On(c.SnapshotsOfSnapshot), kit.On(c.SnapshotsOfGrant))})
			h.Horizon = time.Second
			h.Settle()
			if _, ok := kit.Read[*snapv1.VolumeSnapshot](h.API, kube.KeyOf(snap)); !ok {
				t.Errorf("the snapshot went under the restore of n1\n%s", h.Trace())
			}
			h.Horizon = 10 * time.Minute
			h.Settle()
			if _, isHeld := kit.Read[*snapv1.VolumeSnapshot](h.API, kube.KeyOf(snap)); isHeld != (name == "granted") {
				t.Errorf("held after all: %v\n%s", isHeld, h.Trace())
			}
		})
	}
}
