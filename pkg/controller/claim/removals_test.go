// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// foundRemoval is a world where a process without the right to the record has worked on the claim, while the process before it has left a removal
// there, of a volume "first" that is gone at the driver. The driver gives each volume an id of its own. The claim goes if it leaves, and then the
// right comes.
func foundRemoval(t *testing.T, own func(h *kit.Harness), isLeaving bool) *kit.Harness {
	h := world(t, kit.Claim("data"))
	h.Driver.Next("CreateVolume", kit.Reply{Volume: func(v *csi.Volume) *csi.Volume { v = small(v); v.VolumeId = "first"; return v }})
	h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.Unavailable, Text: "x", Times: 5})
	h.Horizon = 100 * time.Millisecond
	startRecorded(h)
	h.Settle()
	h.Restart()
	grant := h.API.Deny("", "configmaps")
	own(h)
	c := startRecorded(h)
	h.Settle()
	if isLeaving {
		leaves(h)()
	}
	grant()
	keys, err := c.Begin(h.Ctx)
	if err != nil || len(keys) == 0 {
		t.Fatal(err, keys)
	}
	for _, key := range keys {
		h.Enqueue("claim", key)
	}
	return h
}

// TestTwoRemovalsOfOneRequest: what an earlier process was removing and what this one made for the very same request are two volumes. Catches a
// room that takes them for one: with the end of the first removal it would forget its own volume, without a word.
func TestTwoRemovalsOfOneRequest(t *testing.T) {
	for title, own := range map[string]func(h *kit.Harness){
		"its own is wrong too": func(h *kit.Harness) {
			h.Driver.Next("CreateVolume", kit.Reply{Volume: small})
			h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.Unavailable, Text: "x", Times: 5})
		},
		"its own is good and not saved": func(h *kit.Harness) {
			h.API.Fail("create", "persistentvolumes", apierrors.NewInternalError(errors.New("etcd")), 1)
		},
	} {
		t.Run(title, func(t *testing.T) {
			h := foundRemoval(t, own, true)
			h.Horizon = 5 * time.Hour
			h.Settle()
			left, written := h.Driver.Inventory(), kit.All[*corev1.PersistentVolume](h.API)
			if len(left) != len(written) || len(onRecord(h)) != 0 || len(removed(h, "first")) == 0 {
				t.Errorf("left at the driver: %v, PersistentVolumes %d, on record: %v\n%s", left, len(written), onRecord(h), h.Trace())
			}
		})
	}
}

// TestNothingIsAskedForBetweenTwoRemovals: the claim stays, and of two removals the driver refuses one for certain, which says nothing of the other.
// Catches a room that asks for the volume at once, while the other removal may still be done late.
func TestNothingIsAskedForBetweenTwoRemovals(t *testing.T) {
	h := foundRemoval(t, func(h *kit.Harness) {
		h.Driver.Next("CreateVolume", kit.Reply{Volume: small})
		h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.Internal, Text: "x", Times: 5})
	}, false)
	before := len(h.Driver.Calls())
	h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.FailedPrecondition, Text: "in use", Times: 5}, kit.Reply{Code: codes.Internal, Text: "x", Times: 5})
	h.Play(kit.Binder(h.API))
	h.Horizon = 30 * time.Minute
	h.Settle()
	calls := methods(h)[before:]
	if first := slices.Index(calls, "CreateVolume"); first != 11 || len(removed(h, "first")) == 0 || len(onRecord(h)) != 0 {
		t.Errorf("asked for after %d calls, on record %v\n%s", first, onRecord(h), h.Trace())
	}
	if v, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name}); !ok || v.Status.Phase != corev1.VolumeBound || len(h.Driver.Inventory()) != 1 {
		t.Error("the claim has no volume in the end", h.Driver.Inventory(), h.Trace())
	}
}

// TestHeldVolumeIsNotTheLast: somebody holds the volume whose removal comes first. Catches a room that forgets the other removal with it.
func TestHeldVolumeIsNotTheLast(t *testing.T) {
	h := foundRemoval(t, func(h *kit.Harness) {
		h.Driver.Next("CreateVolume", kit.Reply{Volume: small})
		h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.Unavailable, Text: "x", Times: 5})
	}, true)
	h.Put(kit.Volume("by-hand", func(v *corev1.PersistentVolume) {
		v.Spec.CSI.Driver, v.Spec.CSI.VolumeHandle, v.Spec.ClaimRef = kit.DriverName, kit.VolumeHandle(name), nil
	}))
	h.Horizon = 5 * time.Hour
	h.Settle()
	if len(removed(h, "first")) == 0 || len(onRecord(h)) != 0 || len(h.Driver.Inventory()) != 1 {
		t.Errorf("left %v, on record %v\n%s", h.Driver.Inventory(), onRecord(h), h.Trace())
	}
}

// removed are the removals of a volume that were done.
func removed(h *kit.Harness, id string) (calls []kit.Call) {
	for _, call := range h.Driver.Calls("DeleteVolume") {
		if call.Request.(*csi.DeleteVolumeRequest).GetVolumeId() == id && call.Code == codes.OK {
			calls = append(calls, call)
		}
	}
	return calls
}
