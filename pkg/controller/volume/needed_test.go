// SPDX-License-Identifier: Apache-2.0

package volume_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// twin is another PersistentVolume of the volume of "v".
func twin(name string, mods ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	return kit.Volume(name, append([]func(*corev1.PersistentVolume){func(v *corev1.PersistentVolume) {
		v.Spec.CSI.VolumeHandle = "handle-of-v"
		v.Finalizers = []string{"example.com/keep"}
	}}, mods...)...)
}

func held(by string) string {
	return failed + `volume "handle-of-v" is not deleted: PersistentVolume ` + by + ` has it too; set persistentVolumeReclaimPolicy Retain and delete PersistentVolume v to keep the data for the other, or delete the other`
}

// TestTwins: the data of a volume that two PersistentVolumes have goes with the last of them. Catches a deletion that asks only
// about the PersistentVolume at hand.
func TestTwins(t *testing.T) {
	bound := kit.ClaimedBy(kit.Claim("other"))
	retain := func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}
	foreign := func(v *corev1.PersistentVolume) { v.Spec.CSI.Driver = "other.example" }
	for name, c := range map[string]struct {
		twin *corev1.PersistentVolume
		held bool
	}{
		"bound":             {twin("w", bound), true},
		"available":         {twin("w"), true},
		"released and kept": {twin("w", kit.Released, retain), true},
		"leaving too": {twin("w", kit.ClaimedBy(kit.Claim("gone too")), kit.Released, func(v *corev1.PersistentVolume) {
			v.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": "x"}
		}), false},
		"of another driver":    {twin("w", bound, foreign), false},
		"of another volume":    {twin("w", bound, func(v *corev1.PersistentVolume) { v.Spec.CSI.VolumeHandle = "other" }), false},
		"said by an old cache": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := world(t, released())
			if c.twin != nil {
				h.Put(c.twin)
			} else {
				h.Put(twin("w", bound, func(v *corev1.PersistentVolume) { v.Finalizers = nil }))
				h.Stores.Hold()
				kit.Remove[*corev1.PersistentVolume](h.API, kube.Key{Name: "w"})
			}
			start(h)
			h.Enqueue("volume", keyOf("v"))
			h.Horizon = 0
			h.Settle()
			want := []string{remove, unprotect, drop}
			if c.held {
				want = []string{held("w")}
			}
			if d := cmp.Diff(want, h.Log.Lines()[:len(want)]); d != "" || c.held && len(h.Driver.Calls("DeleteVolume")) > 0 {
				t.Errorf("%s\n%s", d, h.Trace())
			}
		})
	}
	for name, leave := range map[string]func(*kit.Harness){
		"the other goes": func(h *kit.Harness) {
			kit.Edit(h.API, kube.Key{Name: "w"}, func(v *corev1.PersistentVolume) { v.Finalizers = nil })
			kit.Remove[*corev1.PersistentVolume](h.API, kube.Key{Name: "w"})
		},
		"the other is let go": func(h *kit.Harness) {
			kit.Edit(h.API, kube.Key{Name: "w"}, kit.Released)
		},
	} {
		t.Run("woken when "+name, func(t *testing.T) {
			h := world(t, released())
			h.Put(twin("w", bound))
			start(h)
			h.Horizon = 10 * time.Minute
			h.Settle()
			if calls := h.Driver.Calls("DeleteVolume"); len(calls) != 0 {
				t.Fatal(calls)
			}
			came := h.Clock.Now()
			leave(h)
			h.Horizon = 0
			h.Settle()
			if got := len(h.Driver.Calls("DeleteVolume")); got == 0 || !h.Clock.Now().Equal(came) || len(h.Driver.Inventory()) != 0 {
				t.Errorf("%d calls\n%s", got, h.Trace())
			}
		})
	}
	t.Run("a node that has it through the other", func(t *testing.T) {
		h := world(t, released())
		h.Put(twin("w", kit.Released), kit.Attachment("a", "w", "n1"))
		start(h)
		h.Horizon = 0
		h.Settle()
		if calls := h.Driver.Calls("DeleteVolume"); len(calls) != 0 {
			t.Error(calls)
		}
	})
	t.Run("it cannot be read", func(t *testing.T) {
		h := world(t, released())
		h.Put(twin("w", bound))
		start(h)
		h.Horizon = time.Hour
		h.API.Script(kit.Rule{Verb: "get", Resource: "persistentvolumes", Name: "w", Err: serverError()})
		h.Settle()
		if calls := h.Driver.Calls("DeleteVolume"); len(calls) != 0 {
			t.Error(calls)
		}
	})
}

// TestLostClaim: a volume that counts as released while its claim is there and names it keeps its data, and the user learns
// what mends it. Catches a deletion that believes the phase alone.
func TestLostClaim(t *testing.T) {
	owner := func(mods ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		claim := kit.Claim("gone", append([]func(*corev1.PersistentVolumeClaim){kit.BoundTo("v")}, mods...)...)
		claim.UID = "restored"
		return claim
	}
	refused := failed + `volume "handle-of-v" is not deleted: claim default/gone exists and names PersistentVolume v; set spec.claimRef.uid of the PersistentVolume to restored, the UID of the claim, and it is bound again; or delete the claim, and the volume goes`
	done := []string{remove, unprotect, drop}
	led := kit.Claim("gone").UID
	waiting := func(uid types.UID) *corev1.PersistentVolumeClaim {
		return kit.Claim("gone", func(c *corev1.PersistentVolumeClaim) { c.UID = uid })
	}
	ledTo := failed + `volume "handle-of-v" is not deleted: spec.claimRef of PersistentVolume v leads to claim default/gone, which exists; wait for kube-controller-manager to bind the two, and see the events of the claim if it does not; or delete the claim, and the volume goes`
	elsewhere := func(phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
		return owner(func(c *corev1.PersistentVolumeClaim) { c.Name, c.Status.Phase = "data", phase })
	}
	misnamed := failed + `volume "handle-of-v" is not deleted: claim default/data exists and names PersistentVolume v; set spec.claimRef of the PersistentVolume to namespace default, name data and uid restored, those of the claim, and it is bound again; or delete the claim, and the volume goes`
	for name, c := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		with  func(*kit.Harness)
		want  []string
		gets  int
	}{
		"there":                   {owner(), nil, []string{refused}, 2},
		"there, not bound yet":    {owner(func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending }), nil, []string{refused}, 2},
		"a namesake, still empty": {waiting("made anew"), nil, done, 2},
		"led to, still empty":     {waiting(led), nil, []string{ledTo}, 2},
		"led to, gone, says the server": {waiting(led), func(h *kit.Harness) {
			h.Stores.Hold()
			kit.Remove[*corev1.PersistentVolumeClaim](h.API, kube.Key{Namespace: kit.Namespace, Name: "gone"})
		}, done, 3},
		// kube-controller-manager lets a volume go whose claim was bound to another one.
		"led to, has another volume": {kit.Claim("gone", kit.BoundTo("other")), nil, done, 2},
		"a namesake, other volume":   {owner(kit.BoundTo("other")), nil, done, 2},
		"terminating":                {owner(func(c *corev1.PersistentVolumeClaim) { kit.Deleted(c); c.Finalizers = []string{"x/y"} }), nil, done, 2},
		"gone, says the server": {owner(), func(h *kit.Harness) {
			h.Stores.Hold()
			kit.Remove[*corev1.PersistentVolumeClaim](h.API, kube.Key{Namespace: kit.Namespace, Name: "gone"})
		}, done, 3},
		"names another by now, says the server": {owner(), func(h *kit.Harness) {
			h.Stores.Hold()
			kit.Edit(h.API, kube.Key{Namespace: kit.Namespace, Name: "gone"}, kit.BoundTo("other"))
		}, done, 3},
		"cannot be read at first": {owner(), func(h *kit.Harness) {
			h.API.Script(kit.Rule{Verb: "get", Resource: "persistentvolumeclaims", Err: serverError(), Times: 1})
		}, nil, 2},
		// The volume's reference was edited to another name; the claim that has it lives.
		"elsewhere, bound": {elsewhere(corev1.ClaimBound), nil, []string{misnamed}, 2},
		"elsewhere, lost":  {elsewhere(corev1.ClaimLost), nil, []string{misnamed}, 2},
		// Anybody can name the volume in a claim; that alone keeps nothing.
		"elsewhere, never bound": {elsewhere(corev1.ClaimPending), nil, done, 2},
		"nobody":                 {nil, nil, done, 2},
	} {
		t.Run(name, func(t *testing.T) {
			h := world(t, released())
			if c.claim != nil {
				h.Put(c.claim)
			}
			if c.with != nil {
				c.with(h)
			}
			start(h)
			h.Enqueue("volume", keyOf("v"))
			h.Horizon = 0
			h.Settle()
			gets := 0
			for _, request := range h.API.Requests() {
				if request.Verb == "get" {
					gets++
				}
			}
			if d := cmp.Diff(c.want, h.Log.Lines()); d != "" || gets != c.gets {
				t.Errorf("%s\n%s\n%s", d, fmt.Sprint(gets, " live reads, want ", c.gets), h.Trace())
			}
		})
	}
}

// TestStranded: a volume that is being deleted and was never bound waits for somebody to say what is to become of its data.
func TestStranded(t *testing.T) {
	h := world(t, released(func(v *corev1.PersistentVolume) { kit.Deleted(v); v.Status.Phase = corev1.VolumeAvailable }))
	start(h)
	h.Settle()
	told := failed + "PersistentVolume v is being deleted and was never released, so that its data is not touched; set persistentVolumeReclaimPolicy Retain, and it goes while the data stays at the driver; delete that there if nobody needs it"
	if d := cmp.Diff([]string{told}, h.Log.Lines()); d != "" {
		t.Fatal(d)
	}
	kit.Edit(h.API, key, func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	})
	h.Settle()
	if left := kit.All[*corev1.PersistentVolume](h.API); len(left) != 0 || len(h.Driver.Inventory()) != 1 {
		t.Error(left, h.Driver.Inventory())
	}
}

// TestDeletedBeforeItIsBound: a volume whose claim is not bound yet is deleted by hand, and Kubernetes binds none that is being deleted.
// Claim and volume say what helps, and it does. Catches a pair that waits for ever, about which nobody is told.
func TestDeletedBeforeItIsBound(t *testing.T) {
	told := "PersistentVolume v is being deleted before claim default/waiting was bound to it, and Kubernetes binds no volume that is being deleted; delete claim default/waiting, and both go; a new claim gets a new volume"
	for _, phase := range []corev1.PersistentVolumePhase{corev1.VolumePending, ""} {
		t.Run(fmt.Sprintf("phase %q", phase), func(t *testing.T) {
			h := world(t, released(kit.ClaimedBy(kit.Claim("waiting")), func(v *corev1.PersistentVolume) { kit.Deleted(v); v.Status.Phase = phase }))
			h.Put(kit.Claim("waiting"))
			start(h)
			h.Horizon = time.Hour
			h.Settle()
			if d := cmp.Diff([]string{"event default/waiting: Warning ProvisioningFailed " + told, failed + told}, h.Log.Lines()); d != "" {
				t.Fatal(d)
			}
			kit.Remove[*corev1.PersistentVolumeClaim](h.API, kube.Key{Namespace: kit.Namespace, Name: "waiting"})
			kit.Edit(h.API, key, kit.Released)
			h.Settle()
			if left := kit.All[*corev1.PersistentVolume](h.API); len(left) != 0 || len(h.Driver.Inventory()) != 0 {
				t.Error(left, h.Driver.Inventory())
			}
		})
	}
	t.Run("a namesake hears nothing", func(t *testing.T) {
		h := world(t, released(kit.ClaimedBy(kit.Claim("waiting")), func(v *corev1.PersistentVolume) { kit.Deleted(v); v.Status.Phase = corev1.VolumePending }))
		h.Put(kit.Claim("waiting", func(c *corev1.PersistentVolumeClaim) { c.UID = "made anew" }))
		start(h)
		h.Settle()
		if d := cmp.Diff([]string{failed + told}, h.Log.Lines()); d != "" {
			t.Error(d)
		}
	})
}

// TestTwinsWhereverItDies: of two PersistentVolumes that leave with one volume, and one that stays, each ends as it should.
func TestTwinsWhereverItDies(t *testing.T) {
	for name, c := range map[string]struct {
		mod          func(*corev1.PersistentVolume)
		left, volume int
	}{
		"both leave": {func(v *corev1.PersistentVolume) { kit.ClaimedBy(kit.Claim("gone too"))(v); kit.Released(v) }, 0, 0},
		"one stays":  {kit.ClaimedBy(kit.Claim("other")), 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			kit.Crash(t, kit.Scenario{
				World: func(h *kit.Harness) {
					if _, err := h.Driver.CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "v", VolumeCapabilities: []*csi.VolumeCapability{{}}}); err != nil {
						t.Fatal(err)
					}
					h.Put(released(), twin("w", func(v *corev1.PersistentVolume) { v.Finalizers = nil }, c.mod))
				},
				Program: start,
				Check: func(t testing.TB, h *kit.Harness) {
					if got := kit.All[*corev1.PersistentVolume](h.API); len(got) != c.left || len(h.Driver.Inventory()) != c.volume {
						t.Error(len(got), h.Driver.Inventory(), h.Trace())
					}
				},
			})
		})
	}
}
