// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

func tier(v string) func(*storagev1.StorageClass) {
	return func(c *storagev1.StorageClass) { c.Parameters = map[string]string{"tier": v} }
}

// An earlier process has made a volume; this one has no right to the record at first, and gets it while its own call is under way or
// after it. Catches a record that takes its own entry for the earlier one, whose volume nobody would look for then.
func TestFoundBesideAnOwnCall(t *testing.T) {
	for title, isDuring := range map[string]bool{"during the call": true, "after the call": false} {
		t.Run(title, func(t *testing.T) {
			h := world(t, kit.Claim("data"), kit.Class(kit.ClassName, tier("gold")))
			h.Play(kit.Binder(h.API))
			h.Driver.Next("CreateVolume", kit.Reply{Code: codes.DeadlineExceeded, Text: "late", Done: true})
			h.Horizon = 100 * time.Millisecond
			startRecorded(h)
			h.Settle()
			h.Restart()
			h.Put(kit.Class(kit.ClassName, tier("lead")))
			grant := h.API.Deny("", "configmaps")
			var c *claim.Controller
			mayRead := func() {
				grant()
				keys, err := c.Begin(h.Ctx)
				if err != nil {
					t.Error(err)
				}
				for _, key := range keys {
					h.Enqueue("claim", key)
				}
			}
			if isDuring {
				h.Driver.Next("CreateVolume", kit.Reply{Meanwhile: mayRead})
			}
			c = startRecorded(h)
			h.Settle()
			if !isDuring {
				mayRead()
				h.Settle()
			}
			leaves(h)()
			h.Horizon = 30 * time.Minute
			h.Settle()
			if left := h.Driver.Inventory(); len(left) != 0 {
				t.Errorf("left at the driver: %v\n%s", left, h.Trace())
			}
		})
	}
}

// The same, and this process asks for the very same as the one before it, whose call the driver is at work on. It is refused, as a first call may
// be without having made anything. Catches a record on which both are one entry, which goes with the refused call.
func TestFoundBesideTheVerySameCall(t *testing.T) {
	h := world(t, kit.Claim("data"))
	h.Driver.Next("CreateVolume", kit.Reply{Code: codes.DeadlineExceeded, Text: "late"})
	h.Horizon = 100 * time.Millisecond
	startRecorded(h)
	h.Settle()
	h.Restart()
	grant := h.API.Deny("", "configmaps")
	var c *claim.Controller
	h.Driver.Next("CreateVolume", kit.Reply{Code: codes.PermissionDenied, Text: "no", Meanwhile: func() {
		grant()
		if _, err := c.Begin(h.Ctx); err != nil {
			t.Error(err)
		}
	}})
	c = startRecorded(h)
	h.Settle()
	if _, err := h.Driver.CreateVolume(t.Context(), requests(h)[0]); err != nil { // what nobody waits for any more
		t.Error(err)
	}
	leaves(h)()
	h.Play(kit.Binder(h.API))
	h.Horizon = 30 * time.Minute
	h.Settle()
	if left := h.Driver.Inventory(); len(left) != 0 || len(onRecord(h)) != 0 {
		t.Errorf("left at the driver: %v, on record %v\n%s", left, onRecord(h), h.Trace())
	}
}

// Between two tries of a removal somebody writes a PersistentVolume that holds the volume. Catches a room that looks once and tries five
// times.
func TestUndoKeepsWhatIsHeldMeanwhile(t *testing.T) {
	h := world(t, kit.Claim("data"))
	h.Driver.Next("CreateVolume", kit.Reply{Volume: small})
	h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.Unavailable, Text: "x", Meanwhile: func() {
		h.Put(kit.Volume("by-hand", func(v *corev1.PersistentVolume) {
			v.Spec.CSI.Driver, v.Spec.CSI.VolumeHandle = kit.DriverName, kit.VolumeHandle(name)
			v.Spec.ClaimRef = nil
		}))
	}})
	startRecorded(h)
	h.Settle()
	if _, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: "by-hand"}); !ok {
		t.Fatal("no PV")
	}
	if n := len(h.Driver.Calls("DeleteVolume")); n != 1 {
		t.Errorf("%d removals of a volume that PersistentVolume by-hand holds\n%s", n, h.Trace())
	}
}

// What the API server says of a volume is long. Catches an entry that is too large for the record because it repeats that, so that nothing
// is ever removed.
func TestUndoOfLongCause(t *testing.T) {
	h := world(t, kit.Claim("data"))
	h.Play(kit.Binder(h.API))
	h.API.Fail("create", "persistentvolumes", apierrors.NewBadRequest(strings.Repeat("x", 300<<10)), 0)
	startRecorded(h)
	h.Horizon = time.Minute
	h.Settle()
	leaves(h)()
	h.Horizon = 3 * time.Hour
	h.Settle()
	if left := h.Driver.Inventory(); len(left) != 0 {
		t.Errorf("LEAK left at the driver: %v, removals %d, creations %d", left, len(h.Driver.Calls("DeleteVolume")), len(requests(h)))
	}
}

// The id of a volume is longer than what is stored, and than what fits on the record. Catches a removal that waits for room which never comes, with
// the volume at the driver.
func TestUndoOfALongID(t *testing.T) {
	h := world(t, kit.Claim("data"))
	id := strings.Repeat("x", 300<<10)
	h.Driver.Next("CreateVolume", kit.Reply{Meanwhile: leaves(h), Volume: func(v *csi.Volume) *csi.Volume { v.VolumeId = id; return v }})
	startRecorded(h)
	h.Settle()
	calls := h.Driver.Calls("DeleteVolume")
	if len(calls) != 1 || calls[0].Request.(*csi.DeleteVolumeRequest).GetVolumeId() != id || len(onRecord(h)) != 0 {
		t.Error(len(calls), onRecord(h), h.Trace())
	}
}

// The removal of one process has no certain outcome; the next has no right to the record at first. Catches one that asks for the volume anew
// before the removal has an end.
func TestUndoFoundLate(t *testing.T) {
	h := world(t, kit.Claim("data"))
	h.Play(kit.Binder(h.API))
	h.Driver.Next("CreateVolume", kit.Reply{Volume: small})
	h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.Unavailable, Text: "x", Times: 5})
	startRecorded(h)
	h.Horizon = 100 * time.Millisecond
	h.Settle()
	h.Restart()
	grant := h.API.Deny("", "configmaps")
	h.Driver.Next("CreateVolume", kit.Reply{Code: codes.Unavailable, Text: "y", Times: 1})
	c := startRecorded(h)
	h.Settle()
	grant()
	keys, err := c.Begin(h.Ctx)
	if err != nil {
		t.Error(err)
	}
	before := len(h.Driver.Calls())
	for _, key := range keys {
		h.Enqueue("claim", key)
	}
	h.Horizon = 30 * time.Minute
	h.Settle()
	after := methods(h)[before:]
	if i := slices.Index(after, "CreateVolume"); i < 0 || !slices.Contains(after[:i], "DeleteVolume") {
		t.Errorf("asked for although its removal is open: %v\n%s", after, h.Trace())
	}
}

// A volume of an earlier request on another node is left open, the next one is wrong and removed, and the claim goes. Catches a removal that
// forgets the earlier request.
func TestUndoForgetsPrior(t *testing.T) {
	h := scheduled(t)
	h.Play(kit.Binder(h.API))
	h.Driver.Next("CreateVolume", kit.Reply{Code: codes.DeadlineExceeded, Text: "late"},
		kit.Reply{Volume: func(v *csi.Volume) *csi.Volume { v.VolumeId, v.CapacityBytes = "other", 1; return v }})
	h.Horizon = 100 * time.Millisecond
	startRecorded(h)
	h.Settle()
	h.Restart()
	kit.Edit(h.API, dataKey, kit.OnNode("n2"))
	h.Driver.Next("DeleteVolume", kit.Reply{Meanwhile: leaves(h)})
	startRecorded(h)
	h.Horizon = 30 * time.Minute
	h.Settle()
	if left := h.Driver.Inventory(); len(left) != 0 || len(requests(h)) < 3 {
		t.Errorf("LEAK the earlier request is forgotten: left %v, %d requests\n%s", left, len(requests(h)), h.Trace())
	}
}

// A removal is on record that this process may not read at first. The driver has mended the volume meanwhile, it is bound, and kept
// by its policy after the claim and its PersistentVolume went. Then the right comes. Catches an old removal that is done all the same.
func TestUndoFoundAfterTheVolumeWasKept(t *testing.T) {
	retain := corev1.PersistentVolumeReclaimRetain
	h := world(t, kit.Claim("data"), kit.Class(kit.ClassName, func(c *storagev1.StorageClass) { c.ReclaimPolicy = &retain }))
	h.Play(kit.Binder(h.API))
	h.Driver.Next("CreateVolume", kit.Reply{Volume: small})
	h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.Unavailable, Text: "x", Times: 5})
	startRecorded(h)
	h.Horizon = 100 * time.Millisecond
	h.Settle()
	h.Restart()
	grant := h.API.Deny("", "configmaps")
	c := startRecorded(h)
	h.Horizon = time.Minute
	h.Settle()
	if v, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name}); !ok || v.Status.Phase != corev1.VolumeBound {
		t.Fatal("not bound", h.Trace())
	}
	leaves(h)()
	h.Settle()
	kit.Remove[*corev1.PersistentVolume](h.API, kube.Key{Name: name})
	h.Settle()
	if _, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name}); ok || len(h.Driver.Inventory()) != 1 {
		t.Fatal("not kept", h.Driver.Inventory(), h.Trace())
	}
	grant()
	keys, err := c.Begin(h.Ctx)
	if err != nil {
		t.Error(err)
	}
	for _, key := range keys {
		h.Enqueue("claim", key)
	}
	h.Horizon = 30 * time.Minute
	h.Settle()
	if len(h.Driver.Inventory()) != 1 {
		t.Errorf("a volume that was kept on purpose is deleted\n%s", h.Trace())
	}
}

// The cache still shows a PersistentVolume of another claim that had the handle and is gone. Catches a room that believes the cache, keeps the wrong
// volume for a holder that there is not, and forgets it with the claim.
func TestUndoAsksWhetherTheHolderIsThere(t *testing.T) {
	h := world(t, kit.Claim("data"), kit.Volume("theirs", kit.ClaimedBy(kit.Claim("other"))))
	h.Driver.Next("CreateVolume", kit.Reply{Meanwhile: leaves(h), Volume: func(v *csi.Volume) *csi.Volume {
		v.VolumeId, v.CapacityBytes = "handle-of-theirs", 1
		return v
	}})
	startRecorded(h)
	h.Stores.Hold()
	kit.Edit(h.API, kube.Key{Name: "theirs"}, func(v *corev1.PersistentVolume) { v.Finalizers = nil })
	kit.Remove[*corev1.PersistentVolume](h.API, kube.Key{Name: "theirs"})
	h.Settle()
	if calls := h.Driver.Calls("DeleteVolume"); len(calls) != 1 {
		t.Errorf("%d removals\n%s", len(calls), h.Trace())
	}
}

// A wrong volume is removed while an earlier request for the same claim is still open, and the driver gives its handle to another claim, as those
// do that number their volumes. Catches a room that takes the handle for one that the first claim still has: the other claim would never get
// its volume, which stays at the driver when that claim goes.
func TestUndoGivesTheHandleBack(t *testing.T) {
	h := scheduled(t)
	h.Play(kit.Binder(h.API))
	number := func(size int64) func(*csi.Volume) *csi.Volume {
		return func(v *csi.Volume) *csi.Volume { v.VolumeId, v.CapacityBytes = "7", size; return v }
	}
	h.Driver.Next("CreateVolume", kit.Reply{Code: codes.DeadlineExceeded, Text: "late"}, kit.Reply{Volume: number(1)})
	h.Horizon = 100 * time.Millisecond
	startRecorded(h)
	h.Settle()
	h.Restart()
	kit.Edit(h.API, dataKey, kit.OnNode("n2"))
	h.Driver.Next("DeleteVolume", kit.Reply{Meanwhile: leaves(h)})
	h.Driver.Next("CreateVolume", kit.Reply{Code: codes.Unavailable, Text: "x"}) // the earlier request stays open
	startRecorded(h)
	h.Settle()
	h.Put(kit.Claim("other", kit.OnNode("n2")))
	h.Driver.Next("CreateVolume", kit.Reply{Volume: number(1 << 30)})
	h.Horizon = time.Second / 2
	h.Settle()
	if v := kit.All[*corev1.PersistentVolume](h.API); len(v) != 1 || v[0].Spec.CSI.VolumeHandle != "7" {
		t.Errorf("%d PersistentVolumes\n%s", len(v), h.Trace())
	}
}
