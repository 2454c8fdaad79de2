// SPDX-License-Identifier: Apache-2.0

package volume_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestUnknownOnceAndTakenBack: the driver does not know a volume for a moment, has deleted nothing, and the PersistentVolume is taken back during that
// very call. The claim that has it uses it, since the storage does have it; when that claim goes, the driver has to be asked again. Catches a room that
// takes "not found" for "deleted" for as long as the process runs, and lets the PersistentVolume go without a call.
func TestUnknownOnceAndTakenBack(t *testing.T) {
	h := world(t, released())
	back := kit.Claim("back", kit.BoundTo("v"))
	h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.NotFound, Text: "the backend is not there", Meanwhile: func() {
		h.Put(back.DeepCopy())
		kit.Edit(h.API, key, func(v *corev1.PersistentVolume) {
			kit.ClaimedBy(back)(v)
			v.Status.Phase = corev1.VolumeBound
		})
	}})
	start(h)
	h.Horizon = time.Hour
	h.Settle()
	if v, ok := kit.Read[*corev1.PersistentVolume](h.API, key); !ok || v.DeletionTimestamp != nil || len(h.Driver.Inventory()) != 1 {
		t.Fatal("the volume was to stay", h.Driver.Inventory(), h.Trace())
	}
	kit.Remove[*corev1.PersistentVolumeClaim](h.API, kube.Key{Namespace: kit.Namespace, Name: "back"})
	kit.Edit(h.API, key, func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeReleased })
	h.Settle()
	if _, ok := kit.Read[*corev1.PersistentVolume](h.API, key); ok || len(h.Driver.Inventory()) != 0 {
		t.Errorf("PersistentVolume is there: %v; the driver was asked %d times, and keeps %v\n%s\n%v", ok, len(h.Driver.Calls("DeleteVolume")), h.Driver.Inventory(), h.Trace(), h.Log.Lines())
	}
}
