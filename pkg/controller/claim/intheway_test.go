// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"context"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// settled is a driver that has each name once, in the zone where it was asked for first.
type settled struct{ *kit.Driver }

func (d settled) CreateVolume(ctx context.Context, request *csi.CreateVolumeRequest) (*csi.Volume, error) {
	zone := request.GetAccessibilityRequirements().GetPreferred()[0].GetSegments()["zone"]
	if zone == "b" && len(d.Inventory()) > 0 {
		return nil, fault.New(fault.CreateVolume, status.Error(codes.AlreadyExists, "it is in zone a"))
	}
	return d.Driver.CreateVolume(ctx, request)
}

// TestVolumeOfAnotherZoneInTheWay: the answer of the first node is lost, the next process serves a claim that is for another node by now, and
// its call is lost as well. Catches a room that only repeats the latter, which the driver refuses because of the volume that the first has made: the
// claim would wait for ever, and leave that volume when it goes.
func TestVolumeOfAnotherZoneInTheWay(t *testing.T) {
	for title, goes := range map[string]bool{"the claim waits": false, "the claim goes": true} {
		t.Run(title, func(t *testing.T) {
			h := scheduled(t)
			h.Play(kit.Binder(h.API))
			behind := func(_ *claim.Options, d *claim.Deps) { d.Driver = settled{h.Driver} }
			h.Driver.Next("CreateVolume", kit.Reply{Code: codes.DeadlineExceeded, Text: "late"})
			h.Horizon = 100 * time.Millisecond
			startRecorded(h, behind)
			h.Settle()
			h.Restart()
			kit.Edit(h.API, dataKey, kit.OnNode("n2"))
			h.Driver.Next("CreateVolume", kit.Reply{Code: codes.Unavailable, Text: "down", Meanwhile: func() {
				request := requests(h)[0] // what nobody waited for comes late
				if _, err := h.Driver.CreateVolume(t.Context(), request); err != nil {
					t.Error(err)
				}
				if goes {
					leaves(h)()
				}
			}})
			startRecorded(h, behind)
			h.Horizon = 3 * time.Hour
			h.Settle()
			v, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name})
			if ok == goes || ok && v.Status.Phase != corev1.VolumeBound || len(h.Driver.Inventory()) == 0 != goes || len(onRecord(h)) != 0 {
				t.Error(h.Driver.Inventory(), onRecord(h), h.Trace())
			}
		})
	}
}
