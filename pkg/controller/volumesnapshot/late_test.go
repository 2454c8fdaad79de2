// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/test/kit"
)

// A PersistentVolume that comes later than its claim, as in a restore of a cluster, is told by the claim, of which Kubernetes says Lost
// until then. Catches a room that looks again by time only: after some failures that is five minutes.
func TestVolumeComesLaterThanItsClaim(t *testing.T) {
	h := kit.New(t)
	claim := kit.Claim("data", kit.BoundTo("pv-data"), func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost })
	h.Put(claim, kit.SnapshotClass(kit.SnapshotClassName))
	h.Driver.PutVolume("pv-data", 1<<30)
	both(h)
	userTakes("snap")(h)
	h.Horizon = time.Hour
	h.Settle()
	if calls := h.Driver.Calls("CreateSnapshot"); len(calls) != 0 {
		t.Fatal(calls)
	}
	h.Put(kit.Volume("pv-data", kit.ClaimedBy(claim)))
	kit.Edit(h.API, key("data"), func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimBound })
	h.Horizon = 10 * time.Second
	h.Settle()
	wantReady("snap")(t, h)
}
