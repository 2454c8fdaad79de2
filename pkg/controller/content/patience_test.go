// SPDX-License-Identifier: Apache-2.0

package content

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// A content was deleted by hand while its snapshot lives and its create is open, and the driver cannot say for long what became of that. Once the
// snapshot goes as well, it is asked anew. Catches a patience that was used up before the end began, so that what was taken stays at the driver.
func TestPatienceOfAnOpenCreateBeginsWithTheEnd(t *testing.T) {
	for title, byHand := range map[string]bool{"the content went only with its snapshot": false, "the content was deleted by hand before": true} {
		for seen, mod := range map[string]func(*Deps){"watched": func(*Deps) {}, "not watched": unseen} {
			t.Run(title+", "+seen, func(t *testing.T) {
				h, _ := start(t)
				c := bound(h)
				lost := 1000
				h.Restart()
				live(h, mod, func(d *Deps) { d.Driver = moody{h.Driver, &lost} })
				h.Horizon = time.Second
				h.Settle()
				if byHand {
					kit.Remove[*kube.Content](h.API, kube.KeyOf(c))
				}
				h.Horizon = 20 * time.Minute
				h.Settle()
				if n := snapshotsAt(h); n != 1 || now(h, c) == nil {
					t.Fatal(n, h.Trace())
				}
				before := len(h.Driver.Calls("CreateSnapshot"))
				lost = 0 // the outage is over
				deleteBoth(h, c)
				mark(h, c)
				h.Settle()
				if n := snapshotsAt(h); n != 0 || now(h, c) != nil {
					t.Errorf("%d snapshots left, asked %d times since the snapshot was deleted, %v\n%s", n, len(h.Driver.Calls("CreateSnapshot"))-before, h.State(), strings.Join(h.Recorder.Events(), "\n"))
				}
			})
		}
	}
}

// A driver says a few times that it failed, then for minutes that it is still at work, and once more that it failed. Catches a room that counts the last
// word to the first ones, and lets go of what the next answer would have named.
func TestAnswersThatSayAtWorkEndTheRow(t *testing.T) {
	for _, code := range []codes.Code{codes.Aborted, codes.DeadlineExceeded} {
		h, _ := start(t)
		c := bound(h)
		h.Driver.Next("CreateSnapshot",
			kit.Reply{Code: codes.DeadlineExceeded, Text: "late", Done: true},
			kit.Reply{Code: codes.Internal, Text: "restarting", Times: 3},
			kit.Reply{Code: code, Text: "still uploading", Times: 14},
			kit.Reply{Code: codes.Internal, Text: "restarting"},
		)
		h.Horizon = 0
		h.Settle()
		deleteBoth(h, c)
		h.Horizon = 2 * time.Hour
		h.Settle()
		if n := snapshotsAt(h); n != 0 || now(h, c) != nil {
			t.Errorf("%v: %d snapshots left of which no object knows\n%s\n%s", code, n, strings.Join(h.Recorder.Events(), "\n"), h.Trace())
		}
	}
}
