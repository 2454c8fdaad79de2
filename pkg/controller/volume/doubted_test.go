// SPDX-License-Identifier: Apache-2.0

package volume_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestAskedAndTakenBack: the driver gives no answer to a deletion, and meanwhile somebody takes the PersistentVolume back. Its data may be gone, which
// nothing shows. Catches a room that says nothing, and one that says it of a driver that has refused, or more than once.
func TestAskedAndTakenBack(t *testing.T) {
	const told = `volume "handle-of-v" of PersistentVolume v is to stay, but the driver was asked to delete it before that was said, and has not said what became of it`
	retained := func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}
	bound := func(v *corev1.PersistentVolume) {
		kit.ClaimedBy(kit.Claim("back", kit.BoundTo("v")))(v)
		v.Status.Phase = corev1.VolumeBound
	}
	for name, c := range map[string]struct {
		code codes.Code
		back func(*corev1.PersistentVolume)
		want int
	}{
		"bound again":           {codes.DeadlineExceeded, bound, 1},
		"to be retained":        {codes.DeadlineExceeded, retained, 1},
		"the driver refused it": {codes.FailedPrecondition, retained, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := world(t, released())
			h.Driver.Next("DeleteVolume", kit.Reply{Code: c.code, Text: "no", Meanwhile: func() {
				h.Put(kit.Claim("back", kit.BoundTo("v")))
				kit.Edit(h.API, key, c.back)
			}})
			start(h)
			h.Horizon = time.Hour
			h.Settle()
			h.Enqueue("volume", keyOf("v"))
			h.Settle()
			if got := strings.Count(strings.Join(h.Log.Lines(), "\n"), told); got != c.want {
				t.Errorf("told %d times, want %d\n%s\n%v", got, c.want, h.Trace(), h.Log.Lines())
			}
		})
	}
}
