// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"flag"
	"testing"

	"github.com/google/go-cmp/cmp"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/source"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

var (
	snapKey   = kube.Key{Namespace: kit.Namespace, Name: "snap"}
	sourceKey = kube.Key{Namespace: kit.Namespace, Name: "source"}
)

// start adds the room to a world; inUse says what is being made.
func start(h *kit.Harness, options *source.Options, inUse func(provision.Source) bool) *source.Controller {
	c := source.New(*options, source.Deps{
		Client: h.API, DriverName: kit.DriverName, Clock: h.Clock, Claims: h.Stores.Claims, Snapshots: h.Stores.Snapshots, IsInUse: inUse,
		RetryStart: h.RetryStart, RetryMax: h.RetryMax,
	})
	h.Add(
		kit.Room{Name: "snapshots", Reconcile: c.ReconcileSnapshot, Keys: kit.Feeds(kit.On(c.SnapshotsOfClaim), kit.On(c.SnapshotsOfSnapshot), kit.On(c.SnapshotsOfGrant))},
		kit.Room{Name: "claims", Reconcile: c.ReconcileClaim, Keys: kit.Feeds(kit.On(c.ClaimsOfClaim), kit.On(c.ClaimsOfGrant))},
	)
	return c
}

func idle(provision.Source) bool { return false }

func protected() *snapv1.VolumeSnapshot {
	return kit.With(kit.Snapshot("snap", "source"), kit.Finalizers("foreign", wellknown.FinalizerSnapshotAsSource))
}

const (
	lift      = `patch volumesnapshots default/snap {"metadata":{"finalizers":["foreign"]}}`
	liftClaim = `patch persistentvolumeclaims default/source {"metadata":{"finalizers":null}}`
)

func TestSnapshots(t *testing.T) {
	restore := kit.FromSnapshot("snap")
	elsewhere := func(c *corev1.PersistentVolumeClaim) {
		c.Namespace = "ns2"
		c.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: kit.Ptr(wellknown.SnapshotGroup), Kind: "VolumeSnapshot", Name: "snap", Namespace: kit.Ptr(kit.Namespace)}
	}
	for _, c := range []struct {
		name   string
		claims []*corev1.PersistentVolumeClaim
		with   func(*kit.Harness)
		inUse  func(provision.Source) bool
		want   []string
	}{
		{name: "T102 an orphan, foreign finalizers stay", want: []string{lift}},
		{name: "T35 its user is done", claims: []*corev1.PersistentVolumeClaim{kit.Claim("a", restore, kit.BoundTo("v"))}, want: []string{lift}},
		{name: "W3 T103 one of two is done", claims: []*corev1.PersistentVolumeClaim{kit.Claim("a", restore, kit.BoundTo("v")), kit.Claim("b", restore)}},
		{name: "T102 a user in another namespace, which has a grant", claims: []*corev1.PersistentVolumeClaim{kit.Claim("a", elsewhere)}},
		{name: "B005 the claim is gone, its volume is being made", inUse: func(s provision.Source) bool {
			return s == provision.Source{Kind: "VolumeSnapshot", Namespace: kit.Namespace, Name: "snap"}
		}},
		{name: "a conflict", with: func(h *kit.Harness) { h.API.Conflict("volumesnapshots", 1) }, want: []string{"patch volumesnapshots default/snap → Conflict", lift}},
		{name: "T102 not allowed", with: func(h *kit.Harness) { h.API.Deny("patch", "volumesnapshots") }, want: []string{"patch volumesnapshots default/snap → Forbidden"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(protected())
			for _, claim := range c.claims {
				h.Put(claim)
			}
			if c.with != nil {
				c.with(h)
			}
			if c.inUse == nil {
				c.inUse = idle
			}
			start(h, source.NewOptions(), c.inUse).GrantsOf = allowing
			h.Settle()
			if d := cmp.Diff(c.want, h.Log.Lines()); d != "" {
				t.Errorf("%s\n%s", d, h.Trace())
			}
		})
	}
}

func TestLastUserLifts(t *testing.T) {
	h := kit.New(t)
	h.Put(protected(), kit.Claim("a", kit.FromSnapshot("snap")), kit.Claim("b", kit.FromSnapshot("snap")))
	start(h, source.NewOptions(), idle)
	h.Settle()
	kit.Edit(h.API, kube.Key{Namespace: kit.Namespace, Name: "a"}, kit.BoundTo("va"))
	h.Settle()
	if lines := h.Log.Lines(); len(lines) != 0 {
		t.Errorf("T103: lifted too early: %v", lines)
	}
	kit.Remove[*corev1.PersistentVolumeClaim](h.API, kube.Key{Namespace: kit.Namespace, Name: "b"})
	h.Settle()
	if d := cmp.Diff([]string{lift}, h.Log.Lines()); d != "" {
		t.Error("T103", d)
	}
}

func TestSweepSwitchedOff(t *testing.T) {
	h := kit.New(t)
	h.Put(protected())
	c := start(h, &source.Options{}, idle)
	h.Settle()
	if lines := h.Log.Lines(); len(lines) != 0 {
		t.Errorf("T102: interval 0 and yet %v", lines)
	}
	// What this process protects itself is lifted all the same.
	change := kube.Change[*snapv1.VolumeSnapshot]{Old: kit.Snapshot("snap", "source"), New: protected()}
	if got := c.SnapshotsOfSnapshot(change); len(got) != 1 {
		t.Error(got)
	}
}

func TestSourceClaims(t *testing.T) {
	h := kit.New(t)
	h.Put(kit.With(kit.Claim("source", kit.BoundTo("v")), kit.Finalizers(wellknown.FinalizerCloneSource)),
		kit.Claim("a", kit.FromClaim("source")), kit.Claim("b", kit.FromClaim("source"), func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = "" }))
	start(h, source.NewOptions(), idle)
	h.Settle()
	kit.Remove[*corev1.PersistentVolumeClaim](h.API, sourceKey)
	h.Settle()
	kit.Edit(h.API, kube.Key{Namespace: kit.Namespace, Name: "a"}, kit.BoundTo("va"))
	h.Settle()
	if lines := h.Log.Lines(); len(lines) != 0 {
		t.Errorf("T101 W19 B031: lifted while a clone is under way: %v", lines)
	}
	kit.Edit(h.API, kube.Key{Namespace: kit.Namespace, Name: "b"}, kit.BoundTo("vb"))
	h.Settle()
	if d := cmp.Diff([]string{liftClaim}, h.Log.Lines()); d != "" {
		t.Error("T101", d)
	}
	if _, ok := kit.Read[*corev1.PersistentVolumeClaim](h.API, sourceKey); ok {
		t.Error("T101: the source claim is still there")
	}
}

func TestLivingSourceClaimKeepsItsFinalizer(t *testing.T) {
	h := kit.New(t)
	h.Put(kit.With(kit.Claim("source", kit.BoundTo("v")), kit.Finalizers(wellknown.FinalizerCloneSource)), kit.Claim("a", kit.FromClaim("source"), kit.BoundTo("va")))
	start(h, source.NewOptions(), idle)
	h.Settle()
	if lines := h.Log.Lines(); len(lines) != 0 {
		t.Errorf("T101: %v", lines)
	}
}

func TestClaimsThatWaitWakeNobody(t *testing.T) {
	c := source.New(*source.NewOptions(), source.Deps{})
	waiting := kube.Change[*corev1.PersistentVolumeClaim]{New: kit.Claim("a", kit.FromSnapshot("snap"))}
	if got := c.SnapshotsOfClaim(waiting); got != nil {
		t.Error(got)
	}
	terminating := kube.Change[*corev1.PersistentVolumeClaim]{New: kit.With(kit.Claim("a", kit.FromClaim("source")), func(o metav1.Object) { kit.Deleted(o) })}
	if got := c.ClaimsOfClaim(terminating); len(got) != 1 || got[0].Name != "source" {
		t.Error(got)
	}
}

func TestFlags(t *testing.T) {
	flags := map[string]string{}
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	options := source.NewOptions()
	options.AddFlags(fs)
	fs.VisitAll(func(f *flag.Flag) { flags[f.Name] = f.DefValue })
	if d := cmp.Diff(map[string]string{"cloning-protection-threads": "1", "snapshot-orphan-sweep-interval": "5m0s"}, flags); d != "" {
		t.Error(d)
	}
	if err := options.Validate(); err != nil {
		t.Error(err)
	}
}
