// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// leading starts a process that leads for the nth time that the lease is held, since the first of which only such as it have led.
func leading(h *kit.Harness, first, now int64) *claim.Controller {
	return startRecorded(h, func(_ *claim.Options, d *claim.Deps) {
		d.Record = &claim.Recording{Tenure: func() kube.Tenure { return kube.Tenure{Lease: "l", First: first, Last: now} }}
	})
}

// TestOthersLedBetween: an attempt is open when its process ends. Then the incumbents lead: they finish the volume, the claim goes, and its data is
// kept, as the class says. Or nobody does anything. Catches a process that trusts the record when it comes back: it would ask for the volume by its
// name, get what was kept, and remove it. Nor may it hold up a claim that still waits, or leave a volume when nobody led in between.
func TestOthersLedBetween(t *testing.T) {
	for title, c := range map[string]struct {
		first, now int64
		isGone     bool
		want       int
		isTold     bool
	}{
		"others led, the claim is gone": {3, 3, true, 1, true},
		"others led, the claim waits":   {3, 3, false, 1, false},
		"nobody led, the claim is gone": {1, 2, true, 0, false},
		"two of ours died, it is gone":  {1, 4, true, 0, false},
		"nobody led, the claim waits":   {1, 2, false, 1, false},
		"the lease counts anew":         {0, 0, true, 1, true},
		"others led, then one of ours":  {3, 9, true, 1, true},
	} {
		t.Run(title, func(t *testing.T) {
			h := world(t, kit.Claim("data"))
			h.Play(kit.Binder(h.API))
			h.Driver.Next("CreateVolume", kit.Reply{Code: codes.DeadlineExceeded, Text: "late", Done: true})
			h.Horizon = 100 * time.Millisecond
			leading(h, 1, 1)
			h.Settle()
			h.Restart()
			if c.isGone {
				kit.Remove[*corev1.PersistentVolumeClaim](h.API, dataKey)
			}
			h.Horizon = 30 * time.Minute
			for n := range int64(2) { // the second knows it from the first only
				leading(h, c.first, c.now+n)
				h.Settle()
				if left := h.Driver.Inventory(); len(left) != c.want {
					t.Errorf("process %d: at the driver: %v\n%s", n, left, h.Trace())
				}
				h.Restart()
			}
			if told := strings.Contains(strings.Join(h.Log.Lines(), "\n"), "so that a volume may be left at the driver: its claim is gone, and others may have led"); told != c.isTold {
				t.Errorf("told %v\n%s", told, strings.Join(h.Log.Lines(), "\n"))
			}
			if on := onRecord(h); len(on) > 0 != c.isTold {
				t.Error("on record:", on)
			}
		})
	}
}
