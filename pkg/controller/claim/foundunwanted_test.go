// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/throttle"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// waitingRoom lets something happen while a call waits for its turn.
type waitingRoom struct {
	claim.Driver
	meanwhile func()
}

func (w *waitingRoom) CreateVolume(ctx context.Context, r *csi.CreateVolumeRequest) (*csi.Volume, error) {
	if do := w.meanwhile; do != nil {
		w.meanwhile = nil
		do()
	}
	return w.Driver.CreateVolume(ctx, r)
}

// As TestFoundBesideTheVerySameCall, but the second call is not refused: while it waits for its turn, the record is read and the claim goes.
// Catches one that forgets what was found, since nothing was asked for by itself.
func TestFoundWhileWaitingForATurn(t *testing.T) {
	h := world(t, kit.Claim("data"))
	h.Driver.Next("CreateVolume", kit.Reply{Code: codes.DeadlineExceeded, Text: "late", Done: true})
	h.Horizon = 100 * time.Millisecond
	startRecorded(h)
	h.Settle()
	h.Restart()
	grant := h.API.Deny("", "configmaps")
	var c *claim.Controller
	room := &waitingRoom{}
	room.meanwhile = func() {
		grant()
		if _, err := c.Begin(h.Ctx); err != nil {
			t.Error(err)
		}
		kit.Remove[*corev1.PersistentVolumeClaim](h.API, dataKey)
	}
	c = startRecorded(h, func(_ *claim.Options, d *claim.Deps) {
		room.Driver = throttle.New(h.Driver, throttle.Options{Most: 10, Deadline: time.Minute, Clock: h.Clock})
		d.Driver = room
	})
	h.Settle()
	h.Play(kit.Binder(h.API))
	h.Horizon = 30 * time.Minute
	h.Settle()
	if left := h.Driver.Inventory(); len(left) != 0 || len(onRecord(h)) != 0 {
		t.Errorf("left at the driver: %v, on record %v\n%s\n%s", left, onRecord(h), strings.Join(h.Log.Lines(), "\n"), h.Trace())
	}
}
