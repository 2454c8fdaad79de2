// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/source"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestSourcesOfANodeThatIsGone: what is made from a source is known on its node, which goes first; when it does not come back,
// the claim does not stay for ever. Catches a process that leaves the sources of other nodes alone whatever becomes of them.
func TestSourcesOfANodeThatIsGone(t *testing.T) {
	madeOn := func(v *corev1.PersistentVolume) {
		v.Spec.CSI.VolumeAttributes = map[string]string{wellknown.VolumeAttributeIdentity: "1-2-" + kit.DriverName + "-n2"}
	}
	managed := func(c *kube.Content) { c.Labels = map[string]string{wellknown.LabelManagedBy: "n2"} }
	waiting := kit.Claim("clone", kit.FromClaim("source"))
	for name, c := range map[string]struct {
		driver string
		users  []kube.Object
		want   []string
	}{
		"nobody needs it":   {kit.DriverName, nil, []string{liftClaim, lift}},
		"a clone waits":     {kit.DriverName, []kube.Object{waiting}, []string{lift}},
		"of another driver": {"other.example", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := kit.New(t)
			going := func(object kube.Object) {
				kit.Deleted(object)
				now := kube.Object(object).GetDeletionTimestamp()
				now.Time = h.Clock.Now()
			}
			claim := kit.With(kit.Claim("source", kit.BoundTo("v")), kit.Finalizers(wellknown.FinalizerCloneSource))
			snapshot := protected()
			content := kit.Content(snapshot, "handle", kit.Taken("s"), managed, func(content *kube.Content) { content.Spec.Driver = c.driver })
			kit.BoundContent(content.Name)(snapshot)
			going(claim)
			going(snapshot)
			h.Put(claim, snapshot, content, kit.Volume("v", madeOn, func(v *corev1.PersistentVolume) { v.Spec.CSI.Driver = c.driver }))
			h.Put(c.users...)
			room := source.New(*source.NewOptions(), source.Deps{
				Client: h.API, DriverName: kit.DriverName, Clock: h.Clock, Claims: h.Stores.Claims, Snapshots: h.Stores.Snapshots, IsInUse: idle,
				RetryStart: h.RetryStart, RetryMax: h.RetryMax, Local: provision.Local{Node: "n1"},
			})
			h.Add(
				kit.Room{Name: "snapshots", Reconcile: room.ReconcileSnapshot, Keys: kit.Feeds(kit.On(room.SnapshotsOfClaim), kit.On(room.SnapshotsOfSnapshot))},
				kit.Room{Name: "claims", Reconcile: room.ReconcileClaim, Keys: kit.On(room.ClaimsOfClaim)},
			)
			h.Horizon = 4 * time.Minute
			h.Settle()
			if lines := h.Log.Lines(); len(lines) != 0 {
				t.Fatalf("its node did not go first: %q", lines)
			}
			h.Horizon = 6 * time.Minute
			h.Settle()
			if d := cmp.Diff(c.want, slices.Sorted(slices.Values(h.Log.Lines()))); d != "" {
				t.Errorf("%s\n%s", d, h.Trace())
			}
		})
	}
}
