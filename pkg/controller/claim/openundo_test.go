// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestUndoWithAnOpenTry (T53): one of the five tries of a removal may still run at the driver, and those after it are refused for certain. What
// is refused are those, which says nothing of the first: the volume is not asked for anew until a removal is done. Catches a room that looks
// at the last of the errors only, and binds what the first try destroys late.
func TestUndoWithAnOpenTry(t *testing.T) {
	for title, c := range map[string]struct {
		first kit.Reply
		dies  bool
		// removals is how many there are before the volume is asked for again.
		removals int
	}{
		"T53 the deadline is over":              {first: kit.Reply{Code: codes.DeadlineExceeded}, removals: 11},
		"T53 the driver is at work on it":       {first: kit.Reply{Code: codes.Aborted}, removals: 11},
		"T53 the connection broke":              {first: kit.Reply{Code: codes.Unavailable}, removals: 11},
		"T53 the last life has asked for it":    {first: kit.Reply{Code: codes.Internal, Times: 5}, dies: true, removals: 15},
		"T53 the driver has done with that try": {first: kit.Reply{Code: codes.Internal}, removals: 5},
		"T53 all are refused":                   {first: kit.Reply{Code: codes.FailedPrecondition}, removals: 5},
		"T53 the driver had no time for it":     {first: kit.Reply{Code: codes.ResourceExhausted}, removals: 5},
	} {
		t.Run(title, func(t *testing.T) {
			h := world(t, kit.Claim("data"))
			h.Play(kit.Binder(h.API))
			h.Driver.Next("CreateVolume", kit.Reply{Volume: small})
			h.Driver.Next("DeleteVolume", c.first, kit.Reply{Code: codes.FailedPrecondition, Text: "in use", Times: 9})
			startRecorded(h)
			h.Horizon = 100 * time.Millisecond
			h.Settle()
			if c.dies {
				h.Restart()
				startRecorded(h)
			}
			h.Horizon = 30 * time.Minute
			h.Settle()
			calls := methods(h)
			if removals := slices.Index(calls[1:], "CreateVolume"); removals != c.removals {
				t.Errorf("asked for anew after %d removals, want %d: %v\n%s", removals, c.removals, calls, h.Trace())
			}
			if v, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name}); !ok || v.Status.Phase != corev1.VolumeBound || len(onRecord(h)) != 0 {
				t.Error("the claim has no volume in the end", onRecord(h), h.Trace())
			}
		})
	}
}
