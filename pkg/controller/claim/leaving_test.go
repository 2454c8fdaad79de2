// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestIdOfVolumeThatGoes: a driver that has deleted a volume gives its id to the next one, while the PersistentVolume of the first is still there, held
// by the finalizer of others, and the claim that gets it goes. Catches a room that forgets what it was answered because somebody else has the id.
func TestIdOfVolumeThatGoes(t *testing.T) {
	const held = "example.com/held"
	for name, size := range map[string]int64{"right otherwise": 0, "too small": 1} {
		t.Run(name, func(t *testing.T) {
			theirs := kit.Volume("theirs", kit.ClaimedBy(kit.Claim("other")))
			theirs.Finalizers, theirs.Status.Phase = []string{held}, corev1.VolumeReleased
			theirs.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
			h := world(t, kit.Claim("data"), theirs)
			kit.Remove[*corev1.PersistentVolume](h.API, kube.Key{Name: "theirs"})
			h.Driver.Next("CreateVolume", kit.Reply{Times: 2, Volume: func(v *csi.Volume) *csi.Volume {
				if v.VolumeId = "handle-of-theirs"; size > 0 {
					v.CapacityBytes = size
				}
				return v
			}})
			start(h)
			h.Horizon = 0
			h.Settle()
			if said := fmt.Sprint(h.Log.Lines()); !strings.Contains(said, `the driver answered with volume "handle-of-theirs", which PersistentVolume theirs has, whose volume is to be deleted`) ||
				!strings.Contains(said, "see the events and the finalizers of PersistentVolume theirs") {
				t.Error("not told", h.Trace())
			}
			kit.Remove[*corev1.PersistentVolumeClaim](h.API, kube.Key{Namespace: kit.Namespace, Name: "data"})
			h.Settle()
			if calls := h.Driver.Calls("DeleteVolume"); len(calls) != 0 {
				t.Error("deleted under an id that another has", h.Trace())
			}
			kit.Edit(h.API, kube.Key{Name: "theirs"}, func(v *corev1.PersistentVolume) { v.Finalizers = nil })
			h.Horizon = 1e12
			h.Settle()
			if v, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: claimVolume}); !ok {
				t.Error("no object knows of the volume", v, h.Driver.Inventory(), h.Trace())
			}
		})
	}
}
