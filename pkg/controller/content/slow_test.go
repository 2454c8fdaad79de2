// SPDX-License-Identifier: Apache-2.0

package content

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestAfterASlowFailureItWaits: a driver that fails after a long time is left alone for as long as one that fails at once. Catches a wait that is
// over when the answer comes, so that the next call follows upon it.
func TestAfterASlowFailureItWaits(t *testing.T) {
	h := kit.New(t)
	h.Put(kit.SnapshotClass(kit.SnapshotClassName))
	h.Driver.PutVolume("pv", 1<<30)
	h.Driver.Next("CreateSnapshot", kit.Reply{Code: codes.Internal, Text: "busy", Meanwhile: func() { h.Clock.Step(30 * time.Second) }})
	live(h)
	bound(h)
	h.Horizon = 30*time.Second + h.RetryStart/2
	h.Settle()
	if calls := h.Driver.Calls("CreateSnapshot"); len(calls) != 1 {
		t.Errorf("%d calls, the second right after the answer of the first\n%s", len(calls), h.Trace())
	}
	h.Horizon = time.Minute
	h.Settle()
	if calls := h.Driver.Calls("CreateSnapshot"); len(calls) != 2 {
		t.Errorf("%d calls, and the second is due\n%s", len(calls), h.Trace())
	}
}

// TestAfterASlowFailedRemovalItWaits is the same for what was taken in place of a lost snapshot.
func TestAfterASlowFailedRemovalItWaits(t *testing.T) {
	h, c := lostOne(t)
	before := len(h.Driver.Calls("DeleteSnapshot"))
	h.Driver.Next("DeleteSnapshot", kit.Reply{Code: codes.Internal, Text: "busy", Meanwhile: func() { h.Clock.Step(30 * time.Second) }})
	deleteBoth(h, c)
	h.Horizon = 30*time.Second + h.RetryStart/2
	h.Settle()
	if calls := h.Driver.Calls("DeleteSnapshot"); len(calls) != before+1 {
		t.Errorf("%d calls, the second right after the answer of the first\n%s", len(calls)-before, h.Trace())
	}
	h.Horizon = time.Minute
	h.Settle()
	if n := snapshotsAt(h); n != 0 {
		t.Errorf("%d left\n%s", n, h.Trace())
	}
}
