// SPDX-License-Identifier: Apache-2.0

package volume_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestBoundTwinIsEnough: a PersistentVolume that is bound has the volume, whatever becomes of the question for its claim. Catches a
// right that is missing for a question which decides nothing, and a volume that waits for it without a word.
func TestBoundTwinIsEnough(t *testing.T) {
	const uid = types.UID("0f1e2d3c-0000-1111-2222-333344445555")
	for name, isDenied := range map[string]bool{"may read claims": false, "may not": true} {
		t.Run(name, func(t *testing.T) {
			h := world(t, released(func(v *corev1.PersistentVolume) { v.Name, v.Spec.ClaimRef.UID = "pvc-"+string(uid), uid }))
			pv := "pvc-" + string(uid)
			other := kit.Claim("other", kit.BoundTo("w"))
			v, _ := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: pv})
			h.Put(other, twin("w", kit.ClaimedBy(other), func(w *corev1.PersistentVolume) { w.Spec.CSI.VolumeHandle = v.Spec.CSI.VolumeHandle }))
			if isDenied {
				h.API.Deny("get", "persistentvolumeclaims")
			}
			start(h)
			h.Horizon = 0
			h.Settle()
			verbs := strings.Join(h.API.Verbs(), ", ")
			if said := strings.Contains(strings.Join(h.Log.Lines(), "\n"), "PersistentVolume w has it too"); !said || strings.Contains(verbs, "persistentvolumeclaims") {
				t.Errorf("said: %v, asked for %s\n%s", said, verbs, h.Trace())
			}
		})
	}
}

// TestNoRightToReadTheClaim: a volume that waits for a right says so.
func TestNoRightToReadTheClaim(t *testing.T) {
	h := world(t, released())
	h.API.Deny("get", "persistentvolumeclaims")
	start(h)
	h.Horizon = 10 * time.Minute
	h.Settle()
	_, stays := kit.Read[*corev1.PersistentVolume](h.API, key)
	if lines := strings.Join(h.Log.Lines(), "\n"); stays && !strings.Contains(lines, "event v: ") {
		t.Errorf("v stays without a word\n%s", h.Trace())
	}
}
