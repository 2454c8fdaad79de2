// SPDX-License-Identifier: Apache-2.0

package content

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestEvasiveDriverIsAskedForMinutes (S81): three times at once, then less and less often, and not for ever.
func TestEvasiveDriverIsAskedForMinutes(t *testing.T) {
	for _, code := range []codes.Code{codes.Internal, codes.ResourceExhausted, codes.PermissionDenied} {
		h, _ := start(t)
		c := bound(h)
		h.Driver.Next("CreateSnapshot", kit.Reply{Code: codes.Internal, Text: "oops"}, kit.Reply{Code: code, Text: "oops", Times: 100})
		h.Horizon = time.Second
		h.Settle()
		before := len(h.Driver.Calls("CreateSnapshot"))
		deleteBoth(h, c)
		h.Horizon = 3500 * time.Millisecond
		h.Settle()
		if n := len(h.Driver.Calls("CreateSnapshot")) - before; n != 3 || now(h, c) == nil {
			t.Errorf("S81 %v: asked %d times: %v", code, n, h.State())
		}
		if waits := strings.Join(h.Recorder.Events(), "\n"); !strings.Contains(waits, "Normal SnapshotDeletePending") {
			t.Errorf("%v: nobody knows what the deletion waits for: %s", code, waits)
		}
		h.Horizon = 5 * time.Minute
		h.Settle()
		if n := len(h.Driver.Calls("CreateSnapshot")) - before; n != 10 || now(h, c) != nil {
			t.Errorf("S81 %v: asked %d times: %v", code, n, h.State())
		}
		events := strings.Join(h.Recorder.Events(), "\n")
		if !strings.Contains(events, "SnapshotOutcomeUnknown") || !strings.Contains(events, "snapshot-"+string(c.Spec.VolumeSnapshotRef.UID)) {
			t.Errorf("the name to look for is not told: %s", events)
		}
	}
}

// TestShortOutageLeavesNothing (I4): the driver has made the snapshot, and what stands behind it is away for a while.
func TestShortOutageLeavesNothing(t *testing.T) {
	h, _ := start(t)
	c := bound(h)
	h.Driver.Next("CreateSnapshot", kit.Reply{Code: codes.Internal, Text: "oops", Done: true, Times: 6})
	h.Horizon = 0
	h.Settle()
	deleteBoth(h, c)
	h.Horizon = 5 * time.Minute
	h.Settle()
	if len(h.Driver.Inventory()) != 1 || now(h, c) != nil {
		t.Errorf("left: %v\n%s", h.State(), h.Trace())
	}
}
