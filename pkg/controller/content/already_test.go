// SPDX-License-Identifier: Apache-2.0

package content

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestAlreadyThereIsNoEnd: the answer to the first call is lost, and to the very same request the driver says that it has a snapshot of that name
// which is another: it compares what it took with what it was asked for, and does not know its own again. Catches a room that takes that for
// "nothing was taken", and lets the content go without a word.
func TestAlreadyThereIsNoEnd(t *testing.T) {
	late := kit.Reply{Code: codes.DeadlineExceeded, Text: "late", Done: true}
	there := func(times int) kit.Reply {
		return kit.Reply{Code: codes.AlreadyExists, Text: "it differs", Times: times}
	}
	for title, c := range map[string]struct {
		replies []kit.Reply
		dies    bool
		left    int
		// soon says that the content goes at once.
		soon bool
	}{
		"for good":                             {replies: []kit.Reply{late, there(9999)}, left: 1},
		"for good, says it to another process": {replies: []kit.Reply{late, there(9999)}, dies: true, left: 1},
		"until it knows it again":              {replies: []kit.Reply{late, there(6)}},
		"to a first call, whose word it is":    {replies: []kit.Reply{there(9999)}, soon: true},
	} {
		t.Run(title, func(t *testing.T) {
			h, _ := start(t)
			content := bound(h)
			h.Driver.Next("CreateSnapshot", c.replies...)
			h.Horizon = 5 * time.Second
			if c.dies {
				h.Horizon = 0
			}
			h.Settle()
			if c.dies {
				h.Restart()
				live(h)
			}
			deleteBoth(h, content)
			h.Horizon = 10 * time.Minute
			if c.soon {
				h.Horizon = 0
			}
			h.Settle()
			isTold := strings.Contains(strings.Join(h.Recorder.Events(), "\n"), wellknown.ReasonSnapshotOutcomeUnknown)
			if n := snapshotsAt(h); n != c.left || isTold != (n > 0) || len(kit.All[*kube.Content](h.API)) != 0 {
				t.Errorf("%d left, told %v, %v\n%s", n, isTold, h.State(), h.Trace())
			}
		})
	}
}
