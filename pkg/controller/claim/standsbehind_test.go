// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestVolumeOfAnotherIsNotTheEnd: the request for the first node is open, the claim goes to a second one, and there the driver answers with a
// volume that somebody else has. Nothing is bound or removed, and then the claim goes. Catches a room that forgets the open request with this one, and
// takes it off the record: what it has made would stay.
func TestVolumeOfAnotherIsNotTheEnd(t *testing.T) {
	theirs := kit.Volume("theirs", kit.ClaimedBy(kit.Claim("other")))
	known := func(h *kit.Harness) { h.Put(theirs.DeepCopy()) }
	for title, c := range map[string]struct {
		size         int64
		before, then func(h *kit.Harness)
	}{
		"right otherwise": {1 << 30, known, func(*kit.Harness) {}},
		"too small":       {1, known, func(*kit.Harness) {}},
		"too small, and the cache does not know whose it is": {1, func(*kit.Harness) {}, func(h *kit.Harness) {
			h.Stores.Hold()
			h.Put(theirs.DeepCopy())
		}},
		"too small, and it is the claim's own": {1, func(*kit.Harness) {}, func(h *kit.Harness) {
			v := theirs.DeepCopy()
			v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: dataKey.Namespace, Name: dataKey.Name, UID: dataUID.UID}
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
			h.Put(v)
		}},
	} {
		t.Run(title, func(t *testing.T) {
			h := kit.New(t)
			h.Driver.Capabilities = withTopology()
			h.Put(kit.Class(kit.ClassName, kit.WaitForConsumer),
				kit.Claim("other", kit.BoundTo("theirs")), kit.Claim("data", kit.OnNode("n1")), kit.Node("n1", map[string]string{"zone": "a"}), kit.CSINode("n1", "zone"),
				kit.Node("n2", map[string]string{"zone": "b"}), kit.CSINode("n2", "zone"))
			c.before(h)
			h.Play(kit.Binder(h.API))
			h.Driver.Next("CreateVolume", kit.Reply{Code: codes.DeadlineExceeded, Text: "late"}, kit.Reply{
				Volume:    func(v *csi.Volume) *csi.Volume { v.VolumeId, v.CapacityBytes = "handle-of-theirs", c.size; return v },
				Meanwhile: func() { leaves(h)(); c.then(h) },
			})
			h.Horizon = 100 * time.Millisecond
			startRecorded(h)
			h.Settle()
			h.Restart()
			kit.Edit(h.API, dataKey, kit.OnNode("n2"))
			startRecorded(h)
			h.Settle()
			h.Stores.Sync()
			h.Horizon = 30 * time.Minute
			h.Settle()
			if left := h.Driver.Inventory(); len(left) != 0 || len(requests(h)) != 3 || len(onRecord(h)) != 0 {
				t.Errorf("left %v, %d requests, on record %v\n%s", left, len(requests(h)), onRecord(h), h.Trace())
			}
			for _, call := range h.Driver.Calls("DeleteVolume") {
				if call.Request.(*csi.DeleteVolumeRequest).GetVolumeId() == "handle-of-theirs" {
					t.Error("the volume of another claim is deleted", h.Trace())
				}
			}
		})
	}
}

// TestRemovalFoundDuringACall: the record can be read only while a call for the claim is under way, and on it is a removal that the process before
// has begun. Catches a room that goes on with the answer, binds the volume, and forgets the removal: what it was about would stay, or would be
// removed late, and with it what was bound.
func TestRemovalFoundDuringACall(t *testing.T) {
	h := world(t, kit.Claim("data"))
	h.Play(kit.Binder(h.API))
	h.Driver.Next("CreateVolume", kit.Reply{Volume: func(v *csi.Volume) *csi.Volume { v = small(v); v.VolumeId = "first"; return v }})
	h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.Unavailable, Text: "x", Times: 5})
	h.Horizon = 100 * time.Millisecond
	startRecorded(h)
	h.Settle()
	h.Restart()
	grant := h.API.Deny("", "configmaps")
	var c *claim.Controller
	h.Driver.Next("CreateVolume", kit.Reply{Meanwhile: func() {
		grant()
		if keys, err := c.Begin(h.Ctx); err != nil || len(keys) == 0 {
			t.Error(keys, err)
		}
	}})
	c = startRecorded(h)
	h.API.Script(kit.Rule{Verb: "create", Resource: "persistentvolumes", Meanwhile: func() {
		if len(removed(h, "first")) == 0 {
			t.Error("bound before the removal has an end", h.Trace())
		}
	}})
	h.Horizon = 30 * time.Minute
	h.Settle()
	v, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name})
	if !ok || v.Status.Phase != corev1.VolumeBound || len(removed(h, "first")) != 1 || len(onRecord(h)) != 0 || len(h.Driver.Inventory()) != 1 {
		t.Error("the claim has no volume in the end", onRecord(h), h.Driver.Inventory(), h.Trace())
	}
}
