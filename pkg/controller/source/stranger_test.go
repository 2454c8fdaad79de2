// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"errors"
	"testing"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/source"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// stranger is a claim of another namespace that wants the data of a source.
func stranger(kind, group, name string) *corev1.PersistentVolumeClaim {
	return kit.Claim("stranger", func(c *corev1.PersistentVolumeClaim) {
		c.Namespace = "ns2"
		ref := &corev1.TypedObjectReference{Kind: kind, Name: name, Namespace: kit.Ptr(kit.Namespace)}
		if group != "" {
			ref.APIGroup = &group
		}
		c.Spec.DataSourceRef = ref
	})
}

// allowing is the answer about a namespace that lets claims of ns2 have all its sources.
func allowing(string) provision.Grants {
	return provision.Grants{All: []provision.Grant{{
		From: []provision.GrantFrom{{Kind: wellknown.KindPersistentVolumeClaim, Namespace: "ns2"}},
		To:   []provision.GrantTo{{Group: wellknown.SnapshotGroup, Kind: wellknown.KindVolumeSnapshot}, {Kind: wellknown.KindPersistentVolumeClaim}},
	}}}
}

func unheard(string) provision.Grants { return provision.Grants{Unknown: errors.New("not heard")} }

func denying(string) provision.Grants { return provision.Grants{} }

// going puts both kinds of sources into a world, on their way out, and a stranger for each.
func going(t *testing.T) *kit.Harness {
	h := kit.New(t)
	h.Put(kit.With(kit.Claim("source", kit.BoundTo("v")), kit.Finalizers(wellknown.FinalizerCloneSource), kit.Deleted),
		kit.With(kit.Snapshot("snap", "source"), kit.Finalizers(wellknown.FinalizerSnapshotAsSource), kit.Deleted),
		stranger(wellknown.KindPersistentVolumeClaim, "", "source"),
		kit.With(stranger(wellknown.KindVolumeSnapshot, wellknown.SnapshotGroup, "snap"), func(o metav1.Object) {
			o.SetName("stranger2")
			o.SetUID("stranger2")
		}))
	h.Horizon = 24 * time.Hour
	return h
}

func left(h *kit.Harness) (n int) {
	if _, ok := kit.Read[*corev1.PersistentVolumeClaim](h.API, sourceKey); ok {
		n++
	}
	if _, ok := kit.Read[*snapv1.VolumeSnapshot](h.API, snapKey); ok {
		n++
	}
	return n
}

// TestStrangersHoldNoSource: a claim of another namespace is refused without a ReferenceGrant, so that it may not keep a source from going:
// whoever owns the source could neither see it nor delete it. Catches one that counts whoever names the source, and one that takes what
// could not be read, or what is being made already, for nothing.
func TestStrangersHoldNoSource(t *testing.T) {
	for _, c := range []struct {
		name   string
		grants func(string) provision.Grants
		inUse  bool
		left   int
	}{
		{name: "no grant", grants: denying},
		{name: "a grant", grants: allowing, left: 2},
		{name: "grants that cannot be read", grants: unheard, left: 2},
		{name: "nobody to ask about grants", left: 2},
		{name: "no grant any more, and the volume is being made", grants: denying, inUse: true, left: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := going(t)
			room := start(h, source.NewOptions(), func(provision.Source) bool { return c.inUse })
			room.GrantsOf = c.grants
			h.Settle()
			if got := left(h); got != c.left {
				t.Errorf("%d sources are left, want %d\n%s", got, c.left, h.Trace())
			}
		})
	}
}

// TestWithdrawnGrantLetsSourcesGo: the end of a grant is heard, and so is that grants are known which were not. Catches a source that is
// looked at again only when a claim changes.
func TestWithdrawnGrantLetsSourcesGo(t *testing.T) {
	grant := &kube.ReferenceGrant{ObjectMeta: metav1.ObjectMeta{Namespace: kit.Namespace, Name: "grant"}}
	t.Run("withdrawn", func(t *testing.T) {
		h := going(t)
		h.Put(grant.DeepCopyObject().(kube.Object))
		room := start(h, source.NewOptions(), idle)
		room.GrantsOf = func(namespace string) provision.Grants {
			if len(h.Stores.Grants.ByIndex(kube.ByNamespace, namespace)) == 0 {
				return denying(namespace)
			}
			return allowing(namespace)
		}
		h.Settle()
		if got := left(h); got != 2 {
			t.Fatalf("%d sources are left while there is a grant", got)
		}
		kit.Remove[*kube.ReferenceGrant](h.API, kube.KeyOf(grant))
		h.Settle()
		if got := left(h); got != 0 {
			t.Errorf("%d sources are left\n%s", got, h.Trace())
		}
	})
	t.Run("known at last", func(t *testing.T) {
		h := going(t)
		answer := unheard
		room := start(h, source.NewOptions(), idle)
		room.GrantsOf = func(namespace string) provision.Grants { return answer(namespace) }
		h.Horizon = time.Second
		h.Settle()
		answer = denying
		h.Horizon = time.Hour
		h.Settle()
		if got := left(h); got != 0 {
			t.Errorf("%d sources are left\n%s", got, h.Trace())
		}
	})
}
