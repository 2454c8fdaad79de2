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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// heldByHand is a PersistentVolume that somebody writes for the volume of the claim "data".
func heldByHand() *corev1.PersistentVolume {
	return kit.Volume("by-hand", func(v *corev1.PersistentVolume) {
		v.Spec.CSI.Driver, v.Spec.CSI.VolumeHandle, v.Spec.ClaimRef = kit.DriverName, kit.VolumeHandle(name), nil
	})
}

// TestUndoFindsAHolderBeforeItsTurn: the removal of a wrong volume waits for its turn, and meanwhile somebody writes a PersistentVolume that holds it.
// Catches a room that deletes the volume on the strength of an old look, one that tells of an orphan that there is not, and one that never removes
// what it has to wait for.
func TestUndoFindsAHolderBeforeItsTurn(t *testing.T) {
	for title, isHeld := range map[string]bool{"held": true, "nothing happens": false} {
		t.Run(title, func(t *testing.T) {
			h := world(t, kit.Claim("data"))
			h.Driver.Next("CreateVolume", kit.Reply{Volume: small, Meanwhile: leaves(h)})
			happened := false
			startRecorded(h, func(_ *claim.Options, d *claim.Deps) {
				d.Driver = kit.Crowd(h, func() {
					if !happened && isHeld {
						h.Put(heldByHand())
					}
					happened = true
				})
			})
			h.Settle()
			left := len(h.Driver.Inventory()) == 1
			if said := strings.Join(h.Log.Lines(), "\n"); !happened || left != isHeld || len(onRecord(h)) != 0 || strings.Contains(said, "orphaned") {
				t.Errorf("happened %v, left %v, on record %v\n%s\n%s", happened, left, onRecord(h), said, h.Trace())
			}
		})
	}
}

// paged is a client whose lists of PersistentVolumes have two pages, and nothing on the first.
type paged struct{ kube.Client }

func (p paged) List(ctx context.Context, r kube.Resource, namespace string, options metav1.ListOptions) (runtime.Object, error) {
	answer, err := p.Client.List(ctx, r, namespace, options)
	if list, ok := answer.(*corev1.PersistentVolumeList); ok && err == nil && options.Continue == "" {
		list.Items, list.Continue = nil, "next"
	}
	return answer, err
}

// TestUndoReadsEveryPage: who holds a wrong volume is on a later page of the list, and in no cache yet. Catches a room that reads the first one only.
func TestUndoReadsEveryPage(t *testing.T) {
	h := world(t, kit.Claim("data"))
	h.Driver.Next("CreateVolume", kit.Reply{Volume: small, Meanwhile: func() {
		h.Stores.Hold()
		h.Put(heldByHand())
	}})
	startRecorded(h, func(_ *claim.Options, d *claim.Deps) { d.Client = paged{d.Client} })
	h.Horizon = 100 * time.Millisecond
	h.Settle()
	if calls := h.Driver.Calls("DeleteVolume"); len(calls) != 0 || len(requests(h)) == 0 {
		t.Errorf("%v\n%s", calls, h.Trace())
	}
}

// TestFoundDuringARemoval: the record can be read only while a wrong volume is being removed, and on it is a request of the process before, which has
// made another volume. Then the claim goes. Catches a room for which the work on the claim is over with the removal.
func TestFoundDuringARemoval(t *testing.T) {
	for title, code := range map[string]codes.Code{"that is done": codes.OK, "that fails at first": codes.Unavailable} {
		t.Run(title, func(t *testing.T) {
			h := newLateRight(t)
			h.Driver.Next("CreateVolume", kit.Reply{Volume: func(v *csi.Volume) *csi.Volume { v = small(v); v.VolumeId = "other"; return v }})
			h.Driver.Next("DeleteVolume", kit.Reply{Code: code, Text: "x", Meanwhile: func() {
				h.begin()
				leaves(h.Harness)()
			}})
			h.Horizon = 30 * time.Minute
			h.Settle()
			if left := h.Driver.Inventory(); len(left) != 0 || len(h.keys) == 0 || len(removed(h.Harness, "other")) != 1 {
				t.Errorf("left %v, found %v\n%s", left, h.keys, h.Trace())
			}
		})
	}
}
