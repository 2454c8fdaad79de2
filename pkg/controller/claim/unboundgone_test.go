// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestVolumeGoesBeforeItIsBound: the PersistentVolume of a waiting claim is deleted before Kubernetes binds it, and the claim waits on.
func TestVolumeGoesBeforeItIsBound(t *testing.T) {
	h := world(t, kit.Claim("data"))
	startRecorded(h)
	h.Settle()
	kit.Edit(h.API, kube.Key{Name: name}, func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	})
	h.Settle()
	kit.Remove[*corev1.PersistentVolume](h.API, kube.Key{Name: name})
	h.Horizon = 24 * time.Hour
	h.Settle()
	if _, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name}); !ok {
		t.Errorf("the claim waits for ever\n%v\n%s", h.Log.Lines(), h.Trace())
	}
}
