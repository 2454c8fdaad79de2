// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestSourceThatTheDriverHasLost: nobody waits for the restore any more, its first call is open, and the driver says that it has no such
// snapshot. The attempt stays, since the first call may have made the volume, and the snapshot goes at once. Catches a provisioner that
// holds it for as long as the attempt, and one that lets it go while the driver may have it.
func TestSourceThatTheDriverHasLost(t *testing.T) {
	for code, want := range map[codes.Code]int{codes.NotFound: 1, codes.Internal: 0, codes.FailedPrecondition: 0} {
		t.Run(code.String(), func(t *testing.T) {
			h := restoring(t)
			h.Driver.Next("CreateVolume", kit.Reply{Code: codes.Unavailable, Text: "y"}, kit.Reply{Code: code, Text: "x", Times: 99})
			var freed []provision.Source
			c := start(h, func(_ *claim.Options, d *claim.Deps) {
				d.SourceFreed = func(source provision.Source) { freed = append(freed, source) }
			})
			h.Horizon = 10 * time.Second
			h.Settle()
			if !c.IsInUse(snapSource) || len(freed) != 0 {
				t.Error("let go while the claim waits", h.Trace())
			}
			leaves(h)()
			h.Settle()
			if c.IsInUse(snapSource) == (want == 1) || len(freed) != want || want == 1 && !slices.Contains(freed, snapSource) {
				t.Errorf("in use %v, freed %v\n%s", c.IsInUse(snapSource), freed, h.Trace())
			}
			calls := len(requests(h))
			h.Horizon = 3 * time.Hour
			h.Settle()
			if c.IsInUse(snapSource) || len(requests(h)) < calls+5 {
				t.Errorf("%d calls, then %d\n%s", calls, len(requests(h)), h.Trace())
			}
		})
	}
}
