// SPDX-License-Identifier: Apache-2.0

package volume_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestVolumeOfAnotherDriver (T71): a PersistentVolume that was written after one of ours, with another csi.driver and the old annotation,
// is let go, and the other driver's volume has the handle of one of ours that somebody uses. Catches a deletion that believes the
// annotation, and takes a handle to a driver that did not give it.
func TestVolumeOfAnotherDriver(t *testing.T) {
	for _, annotation := range []string{wellknown.AnnProvisionedBy, wellknown.AnnMigratedTo} {
		t.Run(annotation, func(t *testing.T) {
			h := world(t, released(kit.ClaimedBy(kit.Claim("mine"))))
			h.Put(kit.Claim("mine", kit.BoundTo("v")))
			h.Put(kit.Volume("w", kit.ClaimedBy(kit.Claim("gone")), kit.Released, func(v *corev1.PersistentVolume) {
				v.Spec.CSI.Driver, v.Spec.CSI.VolumeHandle = "other.example", "handle-of-v"
				v.Annotations = map[string]string{wellknown.AnnProvisionedBy: "kubernetes.io/other", annotation: kit.DriverName}
				v.Finalizers = []string{wellknown.FinalizerVolume}
			}))
			start(h)
			h.Horizon = time.Hour
			h.Settle()
			told := `event w: Warning VolumeFailedDelete PersistentVolume w has spec.csi.driver "other.example", and its annotation ` + annotation + ` says "tandem.csi.example", so that nothing is deleted; ` +
				`set that annotation to other.example, and the provisioner of that driver deletes the volume; or set persistentVolumeReclaimPolicy Retain, and the PersistentVolume can be deleted while the data stays`
			if d := cmp.Diff([]string{told}, h.Log.Lines()); d != "" {
				t.Fatal(d)
			}
			kit.Edit(h.API, kube.Key{Name: "w"}, func(v *corev1.PersistentVolume) {
				v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
			})
			h.Settle()
			if w, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: "w"}); !ok || len(w.Finalizers) > 0 {
				t.Error("our finalizer holds what is none of ours", w)
			}
		})
	}
}
