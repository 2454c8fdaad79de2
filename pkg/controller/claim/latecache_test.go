// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestClaimThatTheCacheStillShows: a claim goes, and the watch of claims stands still; its volume goes as soon as it is written. Catches a room that makes it
// again and again for as long as the cache shows the claim.
func TestClaimThatTheCacheStillShows(t *testing.T) {
	h := world(t, kit.Claim("data"))
	stale := kube.NewStore(kube.ClaimIndexes())
	stale.Show(kit.Claim("data"))
	c := start(h, func(_ *claim.Options, d *claim.Deps) { d.Claims = stale })
	kit.Remove[*corev1.PersistentVolumeClaim](h.API, dataKey)
	for range 3 {
		if _, err := c.Reconcile(h.Ctx, dataUID); err != nil {
			t.Fatal(err)
		}
		kit.Edit(h.API, kube.Key{Name: name}, func(v *corev1.PersistentVolume) { v.Finalizers = nil })
		kit.Remove[*corev1.PersistentVolume](h.API, kube.Key{Name: name})
		h.Horizon = time.Millisecond
		h.Settle()
	}
	if n := len(requests(h)); n != 1 {
		t.Errorf("made %d times\n%s", n, h.Trace())
	}
}
