// SPDX-License-Identifier: Apache-2.0

package content

import (
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestClearingTheStatusFails (S73): the driver has deleted, and the content, which others hold, does not say so yet. The
// deletion may be repeated by the next process, and the end is the same.
func TestClearingTheStatusFails(t *testing.T) {
	for _, dies := range []bool{false, true} {
		h, _ := start(t)
		c := bound(h, func(c *kube.Content) { c.Finalizers = append(c.Finalizers, "example.com/backup") })
		h.Settle()
		h.API.Fail("patch", "volumesnapshotcontents/status", apierrors.NewInternalError(errors.New("etcd")), 1)
		h.Horizon = 0
		deleteBoth(h, c)
		h.Settle()
		if got := now(h, c); got.Status.SnapshotHandle == nil || !kube.HasFinalizer(got, "example.com/backup") {
			t.Fatalf("cleared: %+v", got.Status)
		}
		if dies {
			h.Restart()
			live(h)
		}
		h.Horizon = 0
		h.Clock.Step(60e9)
		h.Horizon = 60e9
		h.Settle()
		got := now(h, c)
		if got.Status.SnapshotHandle != nil || len(got.Finalizers) != 1 || len(h.Driver.Inventory()) != 1 {
			t.Errorf("dies %v: %v %+v", dies, got.Finalizers, got.Status)
		}
		calls := h.Driver.Calls("DeleteSnapshot")
		if want := map[bool]int{false: 1, true: 2}[dies]; len(calls) != want {
			t.Errorf("dies %v: DeleteSnapshot was sent %d times", dies, len(calls))
		}
		kit.Edit(h.API, kube.KeyOf(c), func(c *kube.Content) { c.Finalizers = nil })
		h.Settle()
		if left := kit.All[*kube.Content](h.API); len(left) > 0 {
			t.Errorf("left: %v", h.State())
		}
	}
}

// TestAnnotationsOfOthersSurvive (W2): the mark is to be written from a copy that is older than what others have put on the content.
// A program that sends the whole map wipes the other half's mark, and then nobody deletes the content; and one that writes its record from
// such a copy cannot know whether there is one.
func TestAnnotationsOfOthersSurvive(t *testing.T) {
	h, _ := start(t)
	c := bound(h, func(c *kube.Content) { kube.SetAnnotation(c, "example.com/backup", "1") })
	h.Stores.Hold()
	kit.Edit(h.API, kube.KeyOf(c), func(c *kube.Content) {
		kube.SetAnnotation(c, "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted", "yes")
	})
	h.Driver.Next("CreateSnapshot", kit.Reply{Code: codes.Unavailable})
	h.Horizon = 0
	h.Settle()
	if got := now(h, c); len(got.Annotations) != 2 || len(h.Driver.Calls()) > 0 {
		t.Errorf("written from an old copy: %v", got.Annotations)
	}
	h.Stores.Sync()
	h.Settle()
	got := now(h, c)
	if len(got.Annotations) != 5 {
		t.Errorf("annotations %v", got.Annotations)
	}
}
