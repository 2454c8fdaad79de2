// SPDX-License-Identifier: Apache-2.0

package volume_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestTwinTakenBack: the other PersistentVolume of a volume is taken back in one edit, or a bound claim names it after a restore of objects; its
// phase still says Released. Catches a deletion that knows better than the phase for the one at hand, and believes it for the other.
func TestTwinTakenBack(t *testing.T) {
	waiting := kit.Claim("waiting")
	restored := kit.Claim("other", kit.BoundTo("w"))
	restored.UID = "restored"
	for name, c := range map[string]struct {
		edit  func(*corev1.PersistentVolume)
		claim *corev1.PersistentVolumeClaim
	}{
		"claimRef taken off":                     {func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil }, nil},
		"claimRef by name to a claim that waits": {func(v *corev1.PersistentVolume) { kit.ClaimedBy(waiting)(v); v.Spec.ClaimRef.UID = "" }, waiting},
		"claimRef to a claim that waits":         {func(v *corev1.PersistentVolume) { kit.ClaimedBy(waiting)(v) }, waiting},
		"named by a claim of another UID":        {func(v *corev1.PersistentVolume) { kit.ClaimedBy(kit.Claim("other"))(v) }, restored},
	} {
		t.Run(name, func(t *testing.T) {
			h := world(t, released())
			h.Put(twin("w", c.edit, kit.Released))
			if c.claim != nil {
				h.Put(c.claim.DeepCopy())
			}
			start(h)
			h.Enqueue("volume", keyOf("v"))
			h.Horizon = time.Hour
			h.Settle()
			if calls := h.Driver.Calls("DeleteVolume"); len(calls) != 0 {
				t.Errorf("the data of w is gone: %d DeleteVolume\n%s", len(calls), h.Trace())
			}
		})
	}
}

// TestTwinOfAHollowVolume: one of two PersistentVolumes that leave is taken back while the driver deletes their volume for the other. It looks as if
// its data were there, and has to say that they are not; one that still leaves goes without another call.
func TestTwinOfAHollowVolume(t *testing.T) {
	for name, isTakenBack := range map[string]bool{"taken back": true, "leaving": false} {
		t.Run(name, func(t *testing.T) {
			h := world(t, released())
			h.Put(twin("w", kit.ClaimedBy(kit.Claim("gone too")), kit.Released))
			h.Driver.Next("DeleteVolume", kit.Reply{Meanwhile: func() {
				if isTakenBack {
					kit.Edit(h.API, kube.Key{Name: "w"}, func(v *corev1.PersistentVolume) { v.Spec.ClaimRef, v.Status.Phase = nil, corev1.VolumeAvailable })
				}
			}})
			start(h)
			h.Horizon = time.Hour
			h.Settle()
			said := strings.Contains(strings.Join(h.Log.Lines(), "\n"), "event w: Warning VolumeFailedDelete PersistentVolume w is to stay, but the driver had deleted its volume")
			w, _ := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: "w"})
			if stays := w.DeletionTimestamp == nil; said != isTakenBack || stays != isTakenBack || len(h.Driver.Calls("DeleteVolume")) != 1 {
				t.Errorf("said %v, stays %v\n%s", said, stays, h.Trace())
			}
		})
	}
}

// TestTakenBackBeforeTheClaimIsSeen: a volume is led, by name and UID, to a claim that another watch has not brought yet. Catches a
// deletion that takes a claim for gone because its cache does not have it. The claim that the volume was made for costs no such question.
func TestTakenBackBeforeTheClaimIsSeen(t *testing.T) {
	h := world(t, released())
	h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.Internal, Text: "busy"})
	start(h)
	h.Horizon = time.Millisecond
	h.Settle()
	h.Stores.Hold()
	waiting := kit.Claim("waiting")
	h.Put(waiting.DeepCopy())
	kit.Edit(h.API, key, func(v *corev1.PersistentVolume) {
		kit.ClaimedBy(waiting)(v)
		v.Status.Phase = corev1.VolumeReleased
	})
	h.Horizon = 10 * time.Second
	h.Settle()
	if n := len(h.Driver.Calls("DeleteVolume")); n != 1 || len(h.Driver.Inventory()) != 1 {
		t.Errorf("the data of default/waiting is gone: %d DeleteVolume\n%s", n, h.Trace())
	}

	const uid = types.UID("0f1e2d3c-0000-1111-2222-333344445555")
	h = world(t, released(func(v *corev1.PersistentVolume) { v.Name, v.Spec.ClaimRef.UID = "pvc-"+string(uid), uid }))
	start(h)
	h.Horizon = 0
	h.Settle()
	if verbs := strings.Join(h.API.Verbs(), ", "); strings.Contains(verbs, "persistentvolumeclaims") || len(h.Driver.Calls("DeleteVolume")) != 1 {
		t.Errorf("asked for %s", verbs)
	}
}

// TestTwinOfAVolumeUnknownToTheDriver: a driver that does not know a volume has deleted nothing. Catches a twin that goes without a call of its own, or
// is told that its data is gone.
func TestTwinOfAVolumeUnknownToTheDriver(t *testing.T) {
	for name, back := range map[string]func(*corev1.PersistentVolume){
		"leaving":    nil,
		"taken back": func(v *corev1.PersistentVolume) { v.Spec.ClaimRef, v.Status.Phase = nil, corev1.VolumeAvailable },
		"kept": func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := world(t, released())
			h.Put(twin("w", kit.ClaimedBy(kit.Claim("gone too")), kit.Released))
			h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.NotFound, Text: "no such volume in this account", Meanwhile: func() {
				if back != nil {
					kit.Edit(h.API, kube.Key{Name: "w"}, back)
				}
			}})
			start(h)
			h.Horizon = time.Hour
			h.Settle()
			lines := strings.Join(h.Log.Lines(), "\n")
			if strings.Contains(lines, "event w: Warning VolumeFailedDelete PersistentVolume w is to stay, but the driver had deleted its volume") {
				t.Errorf("w is said to be empty, and the driver has %v\n%s", h.Driver.Inventory(), h.Trace())
			}
			if back == nil && len(h.Driver.Inventory()) != 0 && !strings.Contains(lines, "event w: ") {
				t.Errorf("w went without a call and without a word, and the driver keeps %v\n%s", h.Driver.Inventory(), h.Trace())
			}
		})
	}
}

// TestTwinTakenBackInOneEditDuringTheCall: as TestTakenBackInOneEdit, while the driver deletes for the other: the phase is older than the edit. Catches
// a PersistentVolume that is deleted without a word under the claim that waits for it.
func TestTwinTakenBackInOneEditDuringTheCall(t *testing.T) {
	waiting := kit.Claim("waiting")
	h := world(t, released())
	h.Put(waiting.DeepCopy(), twin("w", kit.ClaimedBy(kit.Claim("gone too")), kit.Released))
	h.Driver.Next("DeleteVolume", kit.Reply{Meanwhile: func() {
		kit.Edit(h.API, kube.Key{Name: "w"}, func(v *corev1.PersistentVolume) { kit.ClaimedBy(waiting)(v); v.Status.Phase = corev1.VolumeReleased })
	}})
	start(h)
	h.Horizon = time.Hour
	h.Settle()
	w, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: "w"})
	said := strings.Contains(strings.Join(h.Log.Lines(), "\n"), "event w: Warning")
	if !said || !ok || w.DeletionTimestamp != nil {
		t.Errorf("w was taken back, is there: %v, said anything: %v\n%s", ok && w.DeletionTimestamp == nil, said, h.Trace())
	}
}

// TestTakenBackUnderAShortName: the name of the volume ends in a digit with which the UID of the claim begins by chance, which proves nothing.
func TestTakenBackUnderAShortName(t *testing.T) {
	for _, pv := range []string{"data-1", "pvc-default"} {
		t.Run(pv, func(t *testing.T) {
			h := world(t, released(func(v *corev1.PersistentVolume) { v.Name = pv }))
			at := kube.Key{Name: pv}
			h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.Internal, Text: "busy"})
			start(h)
			h.Horizon = time.Millisecond
			h.Settle()
			h.Stores.Hold()
			waiting := kit.Claim("waiting")
			waiting.UID = "1f0e2d3c-0000-1111-2222-333344445555"
			h.Put(waiting.DeepCopy())
			kit.Edit(h.API, at, func(v *corev1.PersistentVolume) {
				kit.ClaimedBy(waiting)(v)
				v.Status.Phase = corev1.VolumeReleased
			})
			h.Horizon = 10 * time.Second
			h.Settle()
			if n := len(h.Driver.Calls("DeleteVolume")); n != 1 || len(h.Driver.Inventory()) != 1 {
				t.Errorf("the data of default/waiting is gone: %d DeleteVolume\n%s", n, h.Trace())
			}
		})
	}
}
