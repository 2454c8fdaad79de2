// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/csi-tandem/csi-tandem/test/kit"
)

// faultyRemoval is a driver whose answer to a removal shows a fault of this program, so many times.
type faultyRemoval struct {
	*kit.Driver
	times *int
}

func (f faultyRemoval) DeleteVolume(ctx context.Context, request *csi.DeleteVolumeRequest) error {
	err := f.Driver.DeleteVolume(ctx, request)
	if *f.times > 0 {
		*f.times--
		panic("a fault of this program")
	}
	return err
}

// TestAFaultInARemoval: the look breaks off after a removal was sent, so that nobody here knows whether the driver still works on it. It is as
// open as after a kill: what refuses later tries says nothing of it, and the volume is not asked for anew before a removal is done (as in
// TestUndoWithAnOpenTry, "the last life has asked for it").
func TestAFaultInARemoval(t *testing.T) {
	for name, dies := range map[string]bool{"the process goes on": false, "the process ends": true} {
		t.Run(name, func(t *testing.T) {
			h := world(t, kit.Claim("data"))
			h.Play(kit.Binder(h.API))
			h.Driver.Next("CreateVolume", kit.Reply{Volume: small})
			h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.DeadlineExceeded}, kit.Reply{Code: codes.FailedPrecondition, Text: "in use", Times: 9})
			times := 1
			startFaulty(t, h, h.API, faultyRemoval{h.Driver, &times})
			h.Horizon = 100 * time.Millisecond
			h.Settle()
			if dies {
				h.Restart()
				startFaulty(t, h, h.API, faultyRemoval{h.Driver, &times})
			}
			h.Horizon = 30 * time.Minute
			h.Settle()
			calls := methods(h)
			if removals := slices.Index(calls[1:], "CreateVolume"); times != 0 || removals != 11 {
				t.Errorf("asked for anew after %d removals, want 11: %v\n%s", removals, calls, h.Trace())
			}
		})
	}
}
