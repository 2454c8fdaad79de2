// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"slices"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// maker is the smallest program that is safe to end anywhere: it makes a volume and its PV for each
// claim, and deletes them when the claim is gone.
type maker struct {
	h *Harness
	// careless makes it leak: it names volumes anew on every try.
	careless bool
	tries    *int
}

func (m maker) room() Room {
	return Room{Name: "maker", Reconcile: m.reconcile, Keys: Feeds(
		OwnKey[*corev1.PersistentVolumeClaim](),
		On(func(change kube.Change[*corev1.PersistentVolume]) []reconcile.Key {
			ref := change.Object().Spec.ClaimRef
			return []reconcile.Key{{Namespace: ref.Namespace, Name: ref.Name}}
		}),
	)}
}

func (m maker) reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	claim, exists := m.h.Stores.Claims.Lookup(kube.Key{Namespace: key.Namespace, Name: key.Name})
	volumes := m.h.Stores.Volumes.All()
	volumes = slices.DeleteFunc(volumes, func(v *corev1.PersistentVolume) bool {
		return v.Spec.ClaimRef.Namespace != key.Namespace || v.Spec.ClaimRef.Name != key.Name
	})
	for _, v := range volumes {
		if v.Status.Phase == corev1.VolumeReleased {
			return reconcile.Result{}, m.remove(ctx, v)
		}
	}
	if !exists || len(volumes) > 0 || claim.Spec.VolumeName != "" {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, m.make(ctx, claim)
}

func (m maker) make(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	name := wellknown.VolumeNameFromUID(string(claim.UID))
	if m.careless {
		*m.tries++
		name += string(rune('a' + *m.tries))
	}
	made, err := m.h.Driver.CreateVolume(ctx, &csi.CreateVolumeRequest{
		Name: name, VolumeCapabilities: []*csi.VolumeCapability{{}},
	})
	if err != nil {
		return err
	}
	volume := Volume(name, ClaimedBy(claim), func(v *corev1.PersistentVolume) {
		v.Finalizers = []string{wellknown.FinalizerVolume}
		v.Spec.CSI.VolumeHandle = made.GetVolumeId()
		v.UID = ""
	})
	if _, err := kube.Create(ctx, m.h.API, volume); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	m.h.Recorder.Normal(claim, wellknown.ReasonProvisioningSucceeded, "made "+name)
	return nil
}

func (m maker) remove(ctx context.Context, v *corev1.PersistentVolume) error {
	if err := m.h.Driver.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: v.Spec.CSI.VolumeHandle}); err != nil {
		return err
	}
	if v.DeletionTimestamp == nil {
		if err := kube.Delete(ctx, m.h.API, v); err != nil && !kube.IsGone(err) {
			return err
		}
		return nil // the event of the deletion brings it back
	}
	_, err := kube.Patch(ctx, m.h.API, v, func(o *corev1.PersistentVolume) { kube.RemoveFinalizer(o, wellknown.FinalizerVolume) })
	if kube.IsGone(err) {
		return nil
	}
	return err
}

func story(careless bool, users ...func(*Harness)) Scenario {
	tries := 0
	return Scenario{
		World: func(h *Harness) {
			h.Put(Class(ClassName), Claim("data"))
			h.Play(Binder(h.API))
			h.Driver.Next("CreateVolume", Reply{Code: codes.Unavailable, Text: "not yet"})
		},
		Program: func(h *Harness) { h.Add(maker{h, careless, &tries}.room()) },
		Users:   users,
	}
}

var dataKey = kube.Key{Namespace: Namespace, Name: "data"}

func TestCrashAnywhereEndsAlike(t *testing.T) {
	for _, lag := range []int{0, 3} {
		s := story(false)
		s.Lag = lag
		s.Check = func(t testing.TB, h *Harness) {
			claim, _ := Read[*corev1.PersistentVolumeClaim](h.API, dataKey)
			if claim.Status.Phase != corev1.ClaimBound || len(h.Driver.Inventory()) != 1 {
				t.Errorf("claim %v, driver %v", claim.Status.Phase, h.Driver.Inventory())
			}
		}
		Crash(t, s)
	}
}

func TestCrashWhileTheClaimGoes(t *testing.T) {
	gone := func(h *Harness) { Remove[*corev1.PersistentVolumeClaim](h.API, dataKey) }
	s := story(false, gone)
	s.Check = func(t testing.TB, h *Harness) {
		if left := h.Driver.Inventory(); len(left) != 0 || len(All[*corev1.PersistentVolume](h.API)) != 0 {
			t.Errorf("left behind: %v", left)
		}
	}
	Crash(t, s)
	CrashTwice(t, s)
}

func TestCrashWithADeletionWhileNobodyRuns(t *testing.T) {
	s := story(false)
	s.Meanwhile = func(h *Harness) { Remove[*corev1.PersistentVolumeClaim](h.API, dataKey) }
	differs := false
	for nth := 1; nth <= 8; nth++ {
		// The little program here remembers nothing, so a claim that goes right after its volume was made
		// and before the PV was written is the case that it loses. The runner must see exactly that.
		h := runScenario(t, s, cut{nth, afterDone})
		differs = differs || len(h.Driver.Inventory()) > 0
	}
	if !differs {
		t.Error("the leak was not seen")
	}
}

func TestCrashTwiceCutsTwice(t *testing.T) {
	h := runScenario(t, story(false), cut{2, afterDone}, cut{1, beforeSent})
	name := "pvc-" + string(UIDOf("persistentvolumeclaims", Namespace, "data", 0))
	want := []string{"driver CreateVolume " + name, "driver CreateVolume " + name}
	if diff := cmp.Diff(want, h.cuts); diff != "" {
		t.Error(diff)
	}
	if got := h.Driver.Inventory(); len(got) != 1 {
		t.Errorf("the driver holds %v", got)
	}
}

// A program that is not safe must be seen to differ, else the runner proves nothing.
func TestCrashSeesALeak(t *testing.T) {
	h := runScenario(t, story(true))
	differs := false
	for nth := 1; nth <= h.Log.Effects(); nth++ {
		cut := runScenario(t, story(true), cut{nth, afterDone})
		differs = differs || len(cut.Driver.Inventory()) > 1
	}
	if !differs {
		t.Error("the careless program leaked nowhere")
	}
}

func TestEffectsInOrder(t *testing.T) {
	h := runScenario(t, story(false))
	name := "pvc-" + string(UIDOf("persistentvolumeclaims", Namespace, "data", 0))
	want := []string{
		"driver CreateVolume " + name + " → Unavailable",
		"driver CreateVolume " + name + " → OK",
		"create persistentvolumes " + name,
		"event default/data: Normal ProvisioningSucceeded made " + name,
	}
	if diff := cmp.Diff(want, h.Log.Lines()); diff != "" {
		t.Error(diff)
	}
	if got := h.Clock.Since(Start); got != h.RetryStart {
		t.Errorf("the retry came after %v", got)
	}
}

func TestADeadProcessHasNoEffects(t *testing.T) {
	h := New(t)
	ctx := context.WithoutCancel(h.Ctx)
	h.Put(Claim("data"))
	h.Log.cut(1, afterDone)
	request := &csi.CreateVolumeRequest{Name: "a", VolumeCapabilities: []*csi.VolumeCapability{{}}}
	if _, err := h.Driver.CreateVolume(ctx, request); fault.Of(err) == nil || fault.Of(err).Code != codes.Canceled {
		t.Fatalf("got %v", err)
	}
	request.Name = "b"
	if _, err := h.Driver.CreateVolume(ctx, request); err == nil {
		t.Error("the dead process called the driver")
	}
	if _, err := kube.Create(ctx, h.API, Volume("v")); err == nil {
		t.Error("the dead process wrote")
	}
	if _, err := kube.Fetch[*corev1.PersistentVolumeClaim](ctx, h.API, types.NamespacedName(dataKey)); err == nil {
		t.Error("the dead process read")
	}
	if got := h.Driver.Inventory(); len(got) != 1 {
		t.Errorf("the effect before the end is missing, or more: %v", got)
	}
}
