// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"encoding/json"
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// stored puts an object and reads it back, as a cache would hold it.
func stored[T kube.Object](t *testing.T, h *kit.Harness, obj T) T {
	t.Helper()
	h.Put(obj)
	found, ok := kit.Read[T](h.API, kube.KeyOf(obj))
	if !ok {
		t.Fatal("not stored")
	}
	return found
}

// sent is the body of the last request.
func sent(t *testing.T, h *kit.Harness) map[string]any {
	t.Helper()
	requests := h.API.Requests()
	if len(requests) == 0 {
		t.Fatal("nothing was sent")
	}
	body := map[string]any{}
	if err := json.Unmarshal([]byte(requests[len(requests)-1].Body), &body); err != nil {
		t.Fatal(err)
	}
	return body
}

func label(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"a": "b"} }

func TestPatchSendsTheDifferenceWithItsLock(t *testing.T) {
	h := kit.New(t)
	claim := stored(t, h, kit.Claim("data"))
	after, err := kube.Patch(h.Ctx, h.API, claim, label)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"metadata":{"labels":{"a":"b"},"resourceVersion":"` + claim.ResourceVersion + `","uid":"` + string(claim.UID) + `"}}`
	if got, _ := json.Marshal(sent(t, h)); string(got) != want {
		t.Errorf("sent %s, want %s", got, want)
	}
	if claim.Labels != nil {
		t.Error("the object that the caller holds was changed")
	}
	if after.Labels["a"] != "b" || after.ResourceVersion == claim.ResourceVersion {
		t.Errorf("the answer is not the server's object: %v", after.ObjectMeta)
	}
}

func TestPatchOfNothingSendsNothing(t *testing.T) {
	h := kit.New(t)
	claim := stored(t, h, kit.Claim("data"))
	for name, mutate := range map[string]func(*corev1.PersistentVolumeClaim){
		"no edit":                    func(*corev1.PersistentVolumeClaim) {},
		"annotation as it was":       func(c *corev1.PersistentVolumeClaim) { kube.SetAnnotation(c, "a", "b"); kube.RemoveAnnotation(c, "a") },
		"finalizer that is missing":  func(c *corev1.PersistentVolumeClaim) { kube.RemoveFinalizer(c, "x") },
		"finalizers added, removed":  func(c *corev1.PersistentVolumeClaim) { kube.AddFinalizer(c, "x"); kube.RemoveFinalizer(c, "x") },
		"empty instead of no labels": func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{} },
	} {
		after, err := kube.Patch(h.Ctx, h.API, claim, mutate)
		if err != nil || after != claim {
			t.Errorf("%s: %v, %v", name, after, err)
		}
	}
	if got := h.API.Requests(); len(got) != 0 {
		t.Errorf("sent %v", got)
	}
}

func TestPatchWithAStaleObjectConflicts(t *testing.T) {
	h := kit.New(t)
	claim := stored(t, h, kit.With(kit.Claim("data"), kit.Finalizers("mine")))
	kit.Edit(h.API, kube.KeyOf(claim), func(c *corev1.PersistentVolumeClaim) { kube.AddFinalizer(c, "theirs") })
	// Without the lock this would drop the finalizer that somebody added meanwhile.
	after, err := kube.Patch(h.Ctx, h.API, claim, func(c *corev1.PersistentVolumeClaim) { kube.RemoveFinalizer(c, "mine") })
	if !kube.IsConflict(err) || kube.IsGone(err) || after != claim {
		t.Errorf("got %v, %v", after, err)
	}
	now, _ := kit.Read[*corev1.PersistentVolumeClaim](h.API, kube.KeyOf(claim))
	if !kube.HasFinalizer(now, "theirs") || !kube.HasFinalizer(now, "mine") {
		t.Errorf("finalizers are %v", now.Finalizers)
	}
	if _, err := kube.PatchOwnFields(h.Ctx, h.API, claim, label); err != nil {
		t.Errorf("a patch of own fields needs no lock: %v", err)
	}
	if _, has := sent(t, h)["metadata"].(map[string]any)["resourceVersion"]; has {
		t.Error("a patch of own fields sent a lock")
	}
}

// TestLastKeyTakesNoOthersAlong: removing the only annotation or label that is known removes that one. Catches a difference that says
// null for the whole map, which takes with it what was trimmed, and what others have written since.
func TestLastKeyTakesNoOthersAlong(t *testing.T) {
	h := kit.New(t)
	claim := stored(t, h, kit.Claim("data", func(c *corev1.PersistentVolumeClaim) {
		c.Annotations, c.Labels = map[string]string{"ours": "x"}, map[string]string{"ours": "x"}
	}))
	kit.Edit(h.API, kube.KeyOf(claim), func(c *corev1.PersistentVolumeClaim) {
		c.Annotations["theirs"], c.Labels["theirs"] = "y", "y"
	})
	after, err := kube.PatchOwnFields(h.Ctx, h.API, claim, func(c *corev1.PersistentVolumeClaim) {
		kube.RemoveAnnotation(c, "ours")
		c.Labels = nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, left := range []map[string]string{after.Annotations, after.Labels} {
		if len(left) != 1 || left["theirs"] != "y" {
			t.Errorf("left is %v", left)
		}
	}
}

func TestPatchNeverTouchesANamesake(t *testing.T) {
	h := kit.New(t)
	claim := stored(t, h, kit.Claim("data"))
	kit.Remove[*corev1.PersistentVolumeClaim](h.API, kube.KeyOf(claim))
	_, err := kube.PatchOwnFields(h.Ctx, h.API, claim, label)
	if !kube.IsGone(err) {
		t.Errorf("patching what is gone: %v", err)
	}
	namesake := kit.Claim("data")
	namesake.UID = ""
	h.Put(namesake)
	for name, patch := range map[string]func() error{
		"locked": func() error { _, err := kube.Patch(h.Ctx, h.API, claim, label); return err },
		"own":    func() error { _, err := kube.PatchOwnFields(h.Ctx, h.API, claim, label); return err },
		"own status": func() error {
			_, err := kube.PatchOwnStatus(h.Ctx, h.API, claim, func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost })
			return err
		},
	} {
		if err := patch(); !kube.IsConflict(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if now, _ := kit.Read[*corev1.PersistentVolumeClaim](h.API, kube.KeyOf(claim)); now.Labels != nil || now.Status.Phase == corev1.ClaimLost {
		t.Error("the namesake was changed")
	}
	// What is invalid for another reason stays so, or a room would try it for ever.
	bound := stored(t, h, kit.With(kit.Claim("going"), kit.Finalizers("x"), kit.Deleted))
	_, err = kube.Patch(h.Ctx, h.API, bound, func(c *corev1.PersistentVolumeClaim) { kube.AddFinalizer(c, "y") })
	if !apierrors.IsInvalid(err) {
		t.Errorf("a new finalizer on a terminating object: %v", err)
	}
}

func TestPatchStatusLeavesTheRest(t *testing.T) {
	h := kit.New(t)
	snapshot := stored(t, h, kit.Snapshot("s", "data"))
	after, err := kube.PatchStatus(h.Ctx, h.API, snapshot, func(s *snapv1.VolumeSnapshot) {
		s.Status = &snapv1.VolumeSnapshotStatus{ReadyToUse: kit.Ptr(true)}
	})
	if err != nil || !*after.Status.ReadyToUse {
		t.Fatalf("%v, %v", after, err)
	}
	if request := h.API.Requests()[0]; request.Subresource != "status" {
		t.Errorf("sent to %q", request.Subresource)
	}
	after, err = kube.PatchStatus(h.Ctx, h.API, after, func(s *snapv1.VolumeSnapshot) { s.Status.ReadyToUse = nil })
	if err != nil || after.Status.ReadyToUse != nil {
		t.Errorf("a field that is gone must go: %v, %v", after.Status, err)
	}
}

func TestEditsLeaveSharedSlicesAlone(t *testing.T) {
	claim := kit.With(kit.Claim("data"), kit.Finalizers("a", "b", "a"), kit.Annotation("k", "v"))
	edited := claim.DeepCopy()
	edited.Finalizers, edited.Annotations = claim.Finalizers, claim.Annotations // as in a shallow copy
	kube.AddFinalizer(edited, "a", "c")
	kube.RemoveFinalizer(edited, "a")
	kube.SetAnnotation(edited, "x", "y")
	kube.RemoveAnnotation(edited, "k")
	if len(edited.Finalizers) != 2 || kube.HasFinalizer(edited, "a") || !kube.HasFinalizer(edited, "c") {
		t.Errorf("finalizers %v", edited.Finalizers)
	}
	if len(claim.Finalizers) != 3 || claim.Finalizers[0] != "a" || claim.Annotations["k"] != "v" || claim.Annotations["x"] != "" {
		t.Errorf("the original changed: %v %v", claim.Finalizers, claim.Annotations)
	}
}

func TestDeleteNeedsTheObjectThatWasSeen(t *testing.T) {
	h := kit.New(t)
	volume := stored(t, h, kit.Volume("pv"))
	kit.Edit(h.API, kube.KeyOf(volume), func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	})
	if err := kube.Delete(h.Ctx, h.API, volume); !kube.IsConflict(err) {
		t.Errorf("deleted on an old decision: %v", err)
	}
	volume, _ = kit.Read[*corev1.PersistentVolume](h.API, kube.KeyOf(volume))
	if err := kube.Delete(h.Ctx, h.API, volume); err != nil {
		t.Error(err)
	}
	if err := kube.Delete(h.Ctx, h.API, volume); !kube.IsGone(err) {
		t.Errorf("deleted twice: %v", err)
	}
}
