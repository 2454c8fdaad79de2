// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/source"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestSnapshotsOfOtherDrivers: the finalizer on the source of another driver's restore is for its provisioner to lift, which alone
// knows what it makes for claims that are gone. Catches a sweep over all drivers, and one that takes an error for a no.
func TestSnapshotsOfOtherDrivers(t *testing.T) {
	for name, c := range map[string]struct {
		content func(*kube.Content)
		static  bool
		gone    bool
		with    func(*kit.Harness)
		want    []string
	}{
		"ours":                    {want: []string{lift}},
		"of another":              {content: func(c *kube.Content) { c.Spec.Driver = "other.example" }},
		"named by its spec alone": {static: true, content: func(c *kube.Content) { c.Spec.Driver = "other.example" }},
		"its content is gone":     {gone: true, want: []string{lift}},
		"its content may not be read": {with: func(h *kit.Harness) {
			h.API.Deny("get", "volumesnapshotcontents")
		}},
		"its content cannot be read": {with: func(h *kit.Harness) {
			h.API.Fail("get", "volumesnapshotcontents", apierrors.NewInternalError(errors.New("etcd")), 9)
		}},
		"its content can be read later": {with: func(h *kit.Harness) {
			h.API.Fail("get", "volumesnapshotcontents", apierrors.NewInternalError(errors.New("etcd")), 2)
		}, want: []string{lift}},
	} {
		t.Run(name, func(t *testing.T) {
			h := kit.New(t)
			snapshot := protected()
			content := kit.Content(snapshot, "handle", kit.Taken("s"))
			if c.content != nil {
				c.content(content)
			}
			if c.static {
				snapshot.Status, snapshot.Spec.Source = nil, snapv1.VolumeSnapshotSource{VolumeSnapshotContentName: &content.Name}
			} else {
				kit.BoundContent(content.Name)(snapshot)
			}
			h.Put(snapshot)
			if !c.gone {
				h.Put(content)
			}
			if c.with != nil {
				c.with(h)
			}
			start(h, source.NewOptions(), idle)
			h.Horizon = time.Minute
			h.Settle()
			if d := cmp.Diff(c.want, h.Log.Lines()); d != "" {
				t.Errorf("%s\n%s", d, h.Trace())
			}
		})
	}
}

// TestClaimsOfOtherDrivers: the same for source claims.
func TestClaimsOfOtherDrivers(t *testing.T) {
	for name, c := range map[string]struct {
		driver string
		want   []string
	}{
		"ours":       {kit.DriverName, []string{liftClaim}},
		"of another": {"other.example", nil},
		"gone":       {"", []string{liftClaim}},
	} {
		t.Run(name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(kit.With(kit.Claim("source", kit.BoundTo("v")), kit.Finalizers(wellknown.FinalizerCloneSource)))
			if c.driver != "" {
				h.Put(kit.Volume("v", func(v *corev1.PersistentVolume) { v.Spec.CSI.Driver = c.driver }))
			}
			start(h, source.NewOptions(), idle)
			h.Settle()
			kit.Remove[*corev1.PersistentVolumeClaim](h.API, sourceKey)
			h.Settle()
			if d := cmp.Diff(c.want, h.Log.Lines()); d != "" {
				t.Errorf("%s\n%s", d, h.Trace())
			}
		})
	}
}

// TestLook: what is told of a source is what would be done.
func TestLook(t *testing.T) {
	h := kit.New(t)
	snapshot := kit.With(protected(), func(o metav1.Object) { o.SetName("theirs") })
	content := kit.Content(snapshot, "handle", kit.Taken("s"))
	content.Spec.Driver = "other.example"
	kit.BoundContent(content.Name)(snapshot)
	claim := kit.With(kit.Claim("source", kit.BoundTo("v")), kit.Finalizers(wellknown.FinalizerCloneSource), kit.Deleted)
	h.Put(snapshot, content, claim, kit.Volume("v"))
	c := start(h, source.NewOptions(), idle)
	if step, err := c.LookSnapshot(t.Context(), reconcile.Key{Namespace: kit.Namespace, Name: "theirs"}); err != nil || step != (provision.Hold{By: provision.OtherDriver}) {
		t.Error(step, err)
	}
	if step, err := c.LookClaim(t.Context(), reconcile.Key{Namespace: kit.Namespace, Name: "source"}); err != nil || step != (provision.Lift{}) {
		t.Error(step, err)
	}
	h.API.Deny("get", "persistentvolumes")
	if _, err := c.LookClaim(t.Context(), reconcile.Key{Namespace: kit.Namespace, Name: "source"}); err == nil {
		t.Error("an answer without the volume")
	}
}
