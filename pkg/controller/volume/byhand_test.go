// SPDX-License-Identifier: Apache-2.0

package volume_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

func boundAgain(v *corev1.PersistentVolume) {
	kit.ClaimedBy(kit.Claim("back", kit.BoundTo("v")))(v)
	v.Status.Phase = corev1.VolumeBound
}

const mayBeGone = "has not said what became of it"

// Nobody listens at the socket, and the call never leaves. Catches a word that its data may be gone.
func TestDoubtWithoutACall(t *testing.T) {
	h := world(t, released())
	h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.Unavailable, Text: `connection error: desc = "transport: Error while dialing: dial unix /csi/csi.sock: connect: no such file or directory"`, Meanwhile: func() {
		h.Put(kit.Claim("back", kit.BoundTo("v")))
		kit.Edit(h.API, key, boundAgain)
	}})
	start(h)
	h.Horizon = time.Hour
	h.Settle()
	if strings.Contains(strings.Join(h.Log.Lines(), "\n"), mayBeGone) {
		t.Errorf("%s\n%v", h.Trace(), strings.Join(h.Log.Lines(), "\n"))
	}
}

// The driver does not know a volume for a moment, and still during that call it is taken back and let go again. Catches a room that does not ask again, since the driver
// did not know it at the time.
func TestUnknownTakenBackAndGoing(t *testing.T) {
	for name, c := range map[string]func(h *kit.Harness){
		"released again": func(h *kit.Harness) {
			kit.Edit(h.API, key, func(v *corev1.PersistentVolume) {
				kit.ClaimedBy(kit.Claim("second"))(v)
				v.Status.Phase = corev1.VolumeReleased
			})
		},
		"bound and deleted": func(h *kit.Harness) {
			h.Put(kit.Claim("back", kit.BoundTo("v")))
			kit.Edit(h.API, key, func(v *corev1.PersistentVolume) { boundAgain(v); kube.AddFinalizer(v, "kubernetes.io/pv-protection") })
			kit.Remove[*corev1.PersistentVolume](h.API, key)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := world(t, released())
			h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.NotFound, Text: "the backend is not there", Meanwhile: func() { c(h) }})
			start(h)
			h.Horizon = time.Hour
			h.Settle()
			if name == "bound and deleted" {
				kit.Remove[*corev1.PersistentVolumeClaim](h.API, kube.Key{Namespace: kit.Namespace, Name: "back"})
				if _, ok := kit.Read[*corev1.PersistentVolume](h.API, key); ok {
					kit.Edit(h.API, key, func(v *corev1.PersistentVolume) {
						v.Status.Phase = corev1.VolumeReleased
						kube.RemoveFinalizer(v, "kubernetes.io/pv-protection")
					})
				}
				h.Settle()
			}
			_, ok := kit.Read[*corev1.PersistentVolume](h.API, key)
			if !ok && len(h.Driver.Inventory()) != 0 {
				t.Errorf("leaked: %v\n%s\n%v", h.Driver.Inventory(), h.Trace(), strings.Join(h.Log.Lines(), "\n"))
			}
		})
	}
}

// A deletion has no answer, and then there is a reason to wait that is not that the volume is to stay. Catches a word that it is, with which what there was to say is spent.
func TestDoubtIsSpentOnAnotherReason(t *testing.T) {
	h := world(t, released(func(v *corev1.PersistentVolume) {
		v.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": kit.DriverName}
		v.Spec.StorageClassName = "cls"
	}))
	h.Put(kit.Class("cls"))
	h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.DeadlineExceeded, Text: "late", Done: true, Meanwhile: func() {
		kit.Remove[*storagev1.StorageClass](h.API, kube.Key{Name: "cls"})
		bad := kit.Class("cls")
		bad.Parameters["csi.storage.k8s.io/provisioner-secret-name"] = "${pvc.annotations['gone']}"
		bad.Parameters["csi.storage.k8s.io/provisioner-secret-namespace"] = "ns"
		h.Put(bad)
	}})
	start(h)
	h.Horizon = 5 * time.Second
	h.Settle()
	lines := strings.Join(h.Log.Lines(), "\n")
	if strings.Contains(lines, "is to stay") {
		t.Errorf("it is still to go\n%s\n%s", h.Trace(), lines)
	}
	h.Log.Clear()
	h.Put(kit.Claim("back", kit.BoundTo("v")))
	kit.Edit(h.API, key, boundAgain)
	h.Horizon = time.Hour
	h.Settle()
	if !strings.Contains(strings.Join(h.Log.Lines(), "\n"), "may be gone") {
		t.Errorf("taken back, and nobody is told\n%s\n%v", h.Trace(), h.Log.Lines())
	}
}

// Catches a PersistentVolume in phase Failed that is being deleted, never goes, and of which nobody says a word.
func TestFailedAndGoing(t *testing.T) {
	h := world(t, released(func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeFailed; kit.Deleted(v) }))
	start(h)
	h.Enqueue("volume", keyOf("v"))
	h.Horizon = time.Hour
	h.Settle()
	_, ok := kit.Read[*corev1.PersistentVolume](h.API, key)
	if ok && len(h.Log.Lines()) == 0 {
		t.Errorf("stuck without a word\n%s", h.Trace())
	}
}

// A deletion has no answer, and somebody takes our finalizer off a PersistentVolume that others hold. Catches a word that it is to stay.
func TestGoingIsNotToStay(t *testing.T) {
	h := world(t, released(func(v *corev1.PersistentVolume) { kube.AddFinalizer(v, "external-attacher/x"); kit.Deleted(v) }))
	h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.DeadlineExceeded, Text: "late", Meanwhile: func() {
		kit.Edit(h.API, key, func(v *corev1.PersistentVolume) { v.Finalizers = []string{"external-attacher/x"} })
	}})
	start(h)
	h.Horizon = time.Minute
	h.Settle()
	if lines := strings.Join(h.Log.Lines(), "\n"); strings.Contains(lines, "is to stay") {
		t.Errorf("%s\n%s", h.Trace(), lines)
	}
}

// Only another PersistentVolume of the volume is attached. Catches a message that names the wrong one.
func TestWhoIsAttached(t *testing.T) {
	h := world(t, released())
	h.Put(twin("w", kit.ClaimedBy(kit.Claim("gone too")), kit.Released), kit.Attachment("a", "w", "n1"))
	start(h)
	h.Horizon = time.Second
	h.Settle()
	if lines := strings.Join(h.Log.Lines(), "\n"); strings.Contains(lines, "persistentvolume v is still attached") {
		t.Errorf("%s\n%s", h.Trace(), lines)
	}
}

// The annotation that says who made a volume is edited, and its spec says ours. Catches one that stays Terminating without a word.
func TestAnnotationEdited(t *testing.T) {
	h := world(t, released(func(v *corev1.PersistentVolume) {
		v.Annotations["pv.kubernetes.io/provisioned-by"] = "tandem.csi.exmple"
		kit.Deleted(v)
	}))
	start(h)
	h.Enqueue("volume", keyOf("v"))
	h.Horizon = time.Hour
	h.Settle()
	if _, ok := kit.Read[*corev1.PersistentVolume](h.API, key); ok && len(h.Log.Lines()) == 0 {
		t.Errorf("stays Terminating under our finalizer, without a word\n%s", h.Trace())
	}
}

// A volume that was certainly deleted is taken back and let go again, and by then its id is that of another one. Catches a room that deletes it twice.
func TestDeletedOnce(t *testing.T) {
	h := world(t, released())
	back := kit.Claim("back", kit.BoundTo("v"))
	h.Driver.Next("DeleteVolume", kit.Reply{Meanwhile: func() { h.Put(back); kit.Edit(h.API, key, boundAgain) }})
	start(h)
	h.Horizon = time.Minute
	h.Settle()
	h.Driver.PutVolume("v", 1<<30)
	kit.Remove[*corev1.PersistentVolumeClaim](h.API, kube.KeyOf(back))
	kit.Edit(h.API, key, func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeReleased })
	h.Settle()
	if _, ok := kit.Read[*corev1.PersistentVolume](h.API, key); ok || len(h.Driver.Inventory()) != 1 {
		t.Errorf("PersistentVolume is there: %v; the driver keeps %v\n%s", ok, h.Driver.Inventory(), h.Trace())
	}
}
