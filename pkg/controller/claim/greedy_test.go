// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestGreedyClaimsSpoilNoRace: claims on one node ask for more than a number can tell, which anybody can write. Neither does a full node
// win all races by that, which catches a sum that wraps, nor does one with room lose them by what the driver has refused and never made.
func TestGreedyClaimsSpoilNoRace(t *testing.T) {
	for _, c := range []struct {
		name string
		code codes.Code
		free map[string]int64
		want string
	}{
		{"asked for, on a full node", codes.Unavailable, map[string]int64{"n1": 0, "n2": 10 * gib}, "n2"},
		{"refused, on the one that has room", codes.InvalidArgument, map[string]int64{"n1": 10 * gib, "n2": 0}, "n1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := onNodes(t, c.free, kit.Class(kit.ClassName),
				kit.Claim("huge1", kit.Size("6Ei"), kit.OnNode("n1")), kit.Claim("huge2", kit.Size("6Ei"), kit.OnNode("n1")))
			n.drivers["n1"].Next("CreateVolume", kit.Reply{Code: c.code, Text: "no", Times: 1000})
			n.Horizon = time.Second
			n.Settle()
			n.Put(kit.Claim("exa", kit.Size("1Ei")), kit.Claim("small"))
			n.Horizon = time.Minute
			n.Settle()
			if got := n.selected("exa"); got != "" {
				t.Errorf("a claim for which there is no room is on %s", got)
			}
			if got := n.selected("small"); got != c.want {
				t.Errorf("the claim is on %q, want %s\n%s", got, c.want, n.Trace())
			}
		})
	}
}
