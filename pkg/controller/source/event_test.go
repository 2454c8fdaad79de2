// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/source"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestSourcesAreNotPolled (PP-12, W19): a source that is held is not looked at again until the claim that holds it changes, which
// may live in another namespace and say so by a reference only. Claims that have nothing to do with it wake nobody. Catches
// one that asks again by time, and one that goes through all claims for each change.
func TestSourcesAreNotPolled(t *testing.T) {
	foreign := kit.Claim("clone", func(c *corev1.PersistentVolumeClaim) {
		c.Namespace, c.UID = "ns2", "foreign"
		c.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: wellknown.KindPersistentVolumeClaim, Name: "source", Namespace: kit.Ptr(kit.Namespace)}
	})
	h := kit.New(t)
	h.Put(kit.With(kit.Claim("source", kit.BoundTo("v")), kit.Finalizers(wellknown.FinalizerCloneSource), kit.Deleted), foreign)
	c := start(h, source.NewOptions(), idle)
	c.GrantsOf = allowing
	result, err := c.ReconcileClaim(h.Ctx, reconcile.Key{Namespace: sourceKey.Namespace, Name: sourceKey.Name})
	if err != nil || result != (reconcile.Result{}) {
		t.Errorf("a held source is to be looked at again: %+v, %v", result, err)
	}
	if lines := h.Log.Lines(); len(lines) != 0 {
		t.Errorf("a held source was touched: %q", lines)
	}
	stranger := kit.Claim("stranger", kit.BoundTo("w"))
	if keys := c.ClaimsOfClaim(kube.Change[*corev1.PersistentVolumeClaim]{New: stranger}); len(keys) != 0 {
		t.Errorf("a claim that has no source wakes %v", keys)
	}
	if keys := c.ClaimsOfClaim(kube.Change[*corev1.PersistentVolumeClaim]{Old: foreign, New: foreign}); len(keys) != 0 {
		t.Errorf("a claim that still waits wakes %v", keys)
	}
	kit.Edit(h.API, kube.Key{Namespace: "ns2", Name: "clone"}, kit.BoundTo("x"))
	h.Horizon = 0
	h.Settle()
	if lines := h.Log.Lines(); len(lines) != 1 || lines[0] != liftClaim {
		t.Errorf("after the clone is bound: %q", lines)
	}
}
