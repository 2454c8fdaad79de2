// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"testing"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
)

// TestWhatWaitsIsNoError: a snapshot that waits for the volume of its claim is no error in the log. Catches a room that hands all
// that is in the way to the queue alike.
func TestWhatWaitsIsNoError(t *testing.T) {
	for _, waiting := range []bool{true, false} {
		err := new(round).reject(t.Context(), snapshot.Reject{Message: "the claim is not bound", Waiting: waiting})
		if err == nil || err.Error() != "the claim is not bound" || fault.IsWaiting(err) != waiting {
			t.Errorf("waiting %v: %v, waiting %v", waiting, err, fault.IsWaiting(err))
		}
	}
}
