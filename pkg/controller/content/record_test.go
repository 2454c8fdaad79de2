// SPDX-License-Identifier: Apache-2.0

package content

import (
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// handedOver is a world in which one process has ended with a create out, and the cache of the next is behind: it shows the content as
// it was before anything was on record. Then the cache catches up.
func handedOver(t *testing.T, between func(*kit.Harness, *Controller)) (*kit.Harness, *kube.Content) {
	t.Helper()
	h, _ := start(t)
	c := bound(h)
	before := now(h, c).DeepCopy()
	h.Driver.Next("CreateSnapshot", kit.Reply{Code: codes.DeadlineExceeded, Done: true})
	h.Horizon = 100 * time.Millisecond
	h.Settle()
	h.Restart()
	store := kube.NewStore(kube.ContentIndexes())
	store.Show(before)
	between(h, live(h, func(d *Deps) { d.Contents = store }))
	h.Horizon = 0
	h.Settle()
	store.Show(now(h, c))
	h.Horizon = 30 * time.Minute
	h.Settle()
	return h, c
}

// TestNameFlagsThatChangeBeforeTheCacheHasCaughtUp (I1): a program that writes its record without the lock replaces the name under which the
// snapshot was made by one of its own flags, and has a second one taken.
func TestNameFlagsThatChangeBeforeTheCacheHasCaughtUp(t *testing.T) {
	h, c := handedOver(t, func(_ *kit.Harness, room *Controller) { room.options.NamePrefix = "other" })
	if left := h.Driver.Inventory(); len(left) != 2 {
		t.Errorf("leaked: %v, on record %q\n%s", left, now(h, c).Annotations[wellknown.AnnSnapshotName], h.Trace())
	}
}

// TestClassThatChangesBeforeTheCacheHasCaughtUp (I5): in the same way the parameters of a class that was edited meanwhile would get into the
// repeat of a create, and a strict driver answers that it has another one of that name.
func TestClassThatChangesBeforeTheCacheHasCaughtUp(t *testing.T) {
	h, c := handedOver(t, func(h *kit.Harness, _ *Controller) {
		kit.Edit(h.API, kube.Key{Name: kit.SnapshotClassName}, func(c *snapv1.VolumeSnapshotClass) { c.Parameters = map[string]string{"tier": "new"} })
	})
	for _, call := range h.Driver.Calls("CreateSnapshot") {
		if p := call.Request.(*csi.CreateSnapshotRequest).GetParameters(); len(p) > 0 {
			t.Errorf("repeated with other parameters: %v, answered %v", p, call.Code)
		}
	}
	if got := now(h, c); got.Status == nil || got.Status.SnapshotHandle == nil || got.Status.Error != nil {
		t.Errorf("%+v\n%s", got.Status, h.Trace())
	}
}
