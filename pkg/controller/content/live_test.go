// SPDX-License-Identifier: Apache-2.0

package content

import (
	"errors"
	"testing"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// Each case here is one that a decision from the cache alone would get wrong.

func TestStatusThatWasNotWrittenHasNotHappened(t *testing.T) {
	h, _ := start(t)
	c := bound(h)
	h.Driver.Next("CreateSnapshot", kit.Reply{Meanwhile: func() { deleteBoth(h, c) }})
	h.API.Fail("patch", "volumesnapshotcontents/status", apierrors.NewInternalError(errors.New("etcd")), 1)
	h.Settle()
	// A program that took the driver's answer for settled would let the content go without its handle.
	if len(kit.All[*kube.Content](h.API)) > 0 || len(h.Driver.Inventory()) != 1 || len(h.Driver.Calls("DeleteSnapshot")) != 1 {
		t.Errorf("S58 I4 left: %v\n%s", h.State(), h.Trace())
	}
	if calls := h.Driver.Calls("CreateSnapshot"); len(calls) != 2 || !proto.Equal(calls[0].Request, calls[1].Request) {
		t.Errorf("S58 I5 the same request is repeated: %v", calls)
	}
}

func TestPolicyCountsAsItIsNow(t *testing.T) {
	h, _ := start(t)
	c := bound(h)
	h.Settle()
	deleteBoth(h, c)
	h.Stores.Hold()
	kit.Edit(h.API, kube.KeyOf(c), func(c *kube.Content) { c.Spec.DeletionPolicy = snapv1.VolumeSnapshotContentRetain })
	h.Settle()
	h.Stores.Sync()
	h.Settle()
	if len(h.Driver.Calls("DeleteSnapshot")) > 0 || len(kit.All[*kube.Content](h.API)) > 0 {
		t.Errorf("S70 I3 retained at the last moment: %v", h.State())
	}
}

func TestSnapshotThatTheCacheDoesNotKnow(t *testing.T) {
	h, _ := start(t)
	c := bound(h)
	h.Settle()
	for _, s := range h.Stores.Snapshots.All() {
		h.Stores.Snapshots.Drop(s)
	}
	mark(h, c)
	kit.Remove[*kube.Content](h.API, kube.KeyOf(c))
	h.Settle()
	if len(h.Driver.Calls("DeleteSnapshot")) > 0 || len(kit.All[*kube.Content](h.API)) != 1 {
		t.Error("S76 W18 I3 a living snapshot lost its data to a mark and an old cache")
	}
}

func TestSnapshotsThatCannotBeReadKeepTheirContent(t *testing.T) {
	h, _ := start(t, unseen)
	c := bound(h)
	h.Settle()
	h.API.Fail("get", "volumesnapshots", apierrors.NewTimeoutError("slow", 1), 3)
	mark(h, c)
	kit.Remove[*kube.Content](h.API, kube.KeyOf(c))
	h.Horizon = 2 * time.Second
	h.Settle()
	if len(h.Driver.Calls("DeleteSnapshot")) > 0 {
		t.Error("R14 unknown is not gone")
	}
}

func TestHeldByOthersIsDeletedOnce(t *testing.T) {
	h, _ := start(t)
	c := bound(h, func(c *kube.Content) { c.Finalizers = append(c.Finalizers, "example.com/backup") })
	h.Settle()
	deleteBoth(h, c)
	h.Settle()
	h.Restart()
	live(h)
	h.Settle()
	if n := len(h.Driver.Calls("DeleteSnapshot")); n != 1 {
		t.Errorf("S74 deleted %d times", n)
	}
	got := now(h, c)
	if len(got.Finalizers) != 1 || got.Status == nil || got.Status.SnapshotHandle != nil {
		t.Errorf("S40 S74 %v %+v", got.Finalizers, got.Status)
	}
}

func TestUnboundContentNamedByASnapshot(t *testing.T) {
	for _, named := range []bool{true, false} {
		h, _ := start(t)
		h.Driver.PutSnapshot("old", kit.VolumeHandle("pv"), 1<<30)
		c := kit.NamedContent("old", kit.Taken(kit.SnapshotHandle("old")), func(c *kube.Content) { c.Finalizers = []string{wellknown.FinalizerContent} })
		h.Put(c)
		if named {
			h.Put(kit.Snapshot("data-snapshot", "", kit.FromContent("old")))
		}
		kit.Remove[*kube.Content](h.API, kube.KeyOf(c))
		h.Settle()
		if deleted := len(h.Driver.Calls("DeleteSnapshot")) == 1; deleted == named {
			t.Errorf("B011 named by a snapshot: %v, deleted: %v", named, deleted)
		}
	}
}

func TestLeftoversOfOtherPrograms(t *testing.T) {
	h, _ := start(t)
	ready := bound(h, kit.Taken(kit.SnapshotHandle("x")), func(c *kube.Content) {
		c.Annotations = map[string]string{wellknown.AnnBeingCreated: "yes"}
	})
	h.Settle()
	if now(h, ready).Annotations[wellknown.AnnBeingCreated] != "" || len(h.Driver.Calls()) > 0 {
		t.Error("9.6 a ready content with a leftover mark")
	}
	h.Driver.Next("CreateSnapshot", kit.Reply{Code: codes.DeadlineExceeded, Done: true})
	kit.Edit(h.API, kube.KeyOf(ready), func(c *kube.Content) { c.Status = nil; kube.SetAnnotation(c, wellknown.AnnBeingCreated, "yes") })
	deleteBoth(h, ready)
	h.Settle()
	if len(h.Driver.Calls("CreateSnapshot")) != 2 || len(h.Driver.Inventory()) != 1 || len(kit.All[*kube.Content](h.API)) > 0 {
		t.Errorf("9.6 a marked content with no process behind it: %v", h.State())
	}
}
