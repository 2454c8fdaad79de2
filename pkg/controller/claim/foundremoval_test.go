// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// A removal of an earlier process may still run at the driver. This process has no right to the record, comes to the same removal, and the right
// comes while it is refused: nothing is asked for anew before a removal is done. Catches a removal of two processes that counts as answered because the second was.
func TestSameRemovalFoundMeanwhile(t *testing.T) {
	h := world(t, kit.Claim("data"))
	h.Driver.Next("CreateVolume", kit.Reply{Volume: small}, kit.Reply{Volume: small})
	h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.DeadlineExceeded, Times: 5}) // each still runs
	h.Horizon = 0
	startRecorded(h)
	h.Settle()
	h.Restart()
	grant := h.API.Deny("", "configmaps")
	var c *claim.Controller
	h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.FailedPrecondition, Text: "in use", Meanwhile: func() {
		grant()
		if _, err := c.Begin(h.Ctx); err != nil {
			t.Error(err)
		}
	}}, kit.Reply{Code: codes.FailedPrecondition, Text: "in use", Times: 9})
	c = startRecorded(h)
	h.Settle()
	h.Play(kit.Binder(h.API))
	h.Horizon = 10 * time.Minute
	h.Settle()
	calls := methods(h)
	t.Log(calls)
	last := len(calls) - 1 - slices.Index(func() []string { r := slices.Clone(calls); slices.Reverse(r); return r }(), "CreateVolume")
	refused := 0
	for _, m := range calls[:last] {
		if m == "DeleteVolume" {
			refused++
		}
	}
	if refused < 5+10+1 {
		t.Errorf("asked for anew after %d removals, of which none is done, and %d may still run", refused, 5)
	}
}
