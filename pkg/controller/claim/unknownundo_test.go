// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestRemovalOfWhatTheDriverDoesNotKnow: a wrong volume is removed again, and the driver says that it has none. That ends it, and is told,
// also when the claim is gone. Catches a removal that leaves a volume without a word.
func TestRemovalOfWhatTheDriverDoesNotKnow(t *testing.T) {
	for title, goes := range map[string]bool{"the claim waits": false, "the claim is gone": true} {
		t.Run(title, func(t *testing.T) {
			h := world(t, kit.Claim("data"))
			wrong := kit.Reply{Volume: small}
			if goes {
				wrong.Meanwhile = leaves(h)
			}
			h.Driver.Next("CreateVolume", wrong)
			h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.NotFound, Text: "storage system ssd-1 not found"})
			start(h)
			h.Horizon = time.Hour
			h.Settle()
			said := strings.Join(h.Log.Lines(), "\n")
			if calls := h.Driver.Calls("DeleteVolume"); len(calls) != 1 || strings.Count(said, `Warning ProvisioningFailed the driver does not know volume "handle-of-`+name+`", and has deleted nothing: rpc error: code = NotFound desc = storage system ssd-1 not found; `) != 1 {
				t.Errorf("%v\n%s", calls, said)
			}
			if left := kit.All[*corev1.PersistentVolume](h.API); (len(left) == 0) != goes {
				t.Error(left)
			}
		})
	}
}
