// SPDX-License-Identifier: Apache-2.0

package volume_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestHollowVolumeIsTold: while the driver deletes a volume somebody takes it back, too late. What stays says that it is empty, once,
// and goes when it is deleted. Catches a PersistentVolume that looks as if its data had been kept, about which nobody is told.
func TestHollowVolumeIsTold(t *testing.T) {
	told := failed + `PersistentVolume v is to stay, but the driver had deleted its volume "handle-of-v", or did not know it, before that was said, so that its data is gone; bind no claim to the PersistentVolume, and delete it when the storage does not have the volume either`
	retain := func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}
	for name, c := range map[string]struct {
		volume *corev1.PersistentVolume
		back   func(*corev1.PersistentVolume)
	}{
		"to be kept": {released(), retain},
		"to be kept, without our finalizer": {released(func(v *corev1.PersistentVolume) {
			v.Finalizers = []string{"example.com/keep"}
		}), retain},
		"for the next claim": {released(), func(v *corev1.PersistentVolume) {
			v.Spec.ClaimRef, v.Status.Phase = nil, corev1.VolumeAvailable
		}},
		"bound": {released(), func(v *corev1.PersistentVolume) { kit.ClaimedBy(kit.Claim("new"))(v) }},
	} {
		t.Run(name, func(t *testing.T) {
			h := world(t, c.volume)
			h.Driver.Next("DeleteVolume", kit.Reply{Meanwhile: func() { kit.Edit(h.API, key, c.back) }})
			start(h)
			h.Horizon = time.Hour
			h.Settle()
			times := 0
			for _, line := range h.Log.Lines() {
				if line == told {
					times++
				}
			}
			v, ok := kit.Read[*corev1.PersistentVolume](h.API, key)
			if !ok || times != 1 {
				t.Fatalf("there: %v, told %d times\n%v", ok, times, h.Log.Lines())
			}
			v.Finalizers = slices.DeleteFunc(v.Finalizers, func(f string) bool { return f == "example.com/keep" })
			kit.Edit(h.API, key, func(o *corev1.PersistentVolume) { o.Finalizers = v.Finalizers })
			kit.Remove[*corev1.PersistentVolume](h.API, key)
			h.Settle()
			if v, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: "v"}); ok && v.Status.Phase != corev1.VolumeBound {
				t.Error("it cannot be deleted any more", v.Finalizers)
			}
		})
	}
}
