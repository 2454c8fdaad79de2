// SPDX-License-Identifier: Apache-2.0

package volume_test

import (
	"slices"
	"strings"
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

// TestLeavingVolumeIsNotHollow: the driver has deleted a volume, its PersistentVolume could not be let go at once, and a cache that lags still shows
// the claim, or the PersistentVolume as bound to it. Catches one that takes that for a wish to keep the volume, says so, and is not looked at again when
// the cache has caught up.
func TestLeavingVolumeIsNotHollow(t *testing.T) {
	claim := kit.Claim("gone", kit.BoundTo("v"))
	h := world(t, released())
	h.Put(claim.DeepCopy())
	h.API.Fail("patch", "persistentvolumes", serverError(), 1)
	start(h)
	h.Stores.Hold()
	kit.Remove[*corev1.PersistentVolumeClaim](h.API, kube.KeyOf(claim))
	h.Horizon = time.Minute
	h.Settle()
	if _, stays := kit.Read[*corev1.PersistentVolume](h.API, key); stays || len(h.Driver.Calls("DeleteVolume")) != 1 {
		t.Errorf("it stays: %v\n%v\n%s", stays, h.Log.Lines(), h.Trace())
	}
}

// TestHollowVolumeGoesWithItsClaim: a claim that names the emptied volume keeps it for as long as it is there. Catches one that waits for a change of
// the volume, which the end of a claim is not.
func TestHollowVolumeGoesWithItsClaim(t *testing.T) {
	owner := kit.Claim("gone", kit.BoundTo("v"))
	owner.UID = "restored"
	h := world(t, released())
	h.Driver.Next("DeleteVolume", kit.Reply{Meanwhile: func() { h.Put(owner.DeepCopy()) }})
	h.API.Fail("patch", "persistentvolumes", serverError(), 1)
	start(h)
	h.Horizon = time.Minute
	h.Settle()
	if lines := strings.Join(h.Log.Lines(), "\n"); !strings.Contains(lines, "PersistentVolume v is to stay, but") {
		t.Errorf("nobody is told\n%s", h.Trace())
	}
	kit.Remove[*corev1.PersistentVolumeClaim](h.API, kube.KeyOf(owner))
	h.Horizon = time.Hour
	h.Settle()
	if _, stays := kit.Read[*corev1.PersistentVolume](h.API, key); stays || len(h.Driver.Calls("DeleteVolume")) != 1 {
		t.Errorf("it stays: %v\n%s", stays, h.Trace())
	}
}
