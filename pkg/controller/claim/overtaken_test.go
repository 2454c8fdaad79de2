// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestOvertakenTellsNoClaim: who was overtaken stops, and the claims that wait go on with the other, as docs/operations.md says. Catches an event
// that sends their users to look at a record of which they have no need to know.
func TestOvertakenTellsNoClaim(t *testing.T) {
	h := world(t, kit.Claim("data"))
	startRecorded(h)
	kit.Edit(h.API, recordKey, func(c *corev1.ConfigMap) { c.Data["epoch"] = "7 other" })
	h.Settle()
	if events := h.Recorder.Events(); len(events) > 0 || len(requests(h)) > 0 {
		t.Errorf("told %v, %d calls", events, len(requests(h)))
	}
}
