// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/examples/driver/backend"
)

// TestGivenSnapshots (S41, S42): a snapshot that the driver has already gets its two objects by hand, in either order.
func TestGivenSnapshots(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{})
	volume := w.disk("data")
	made := func(name string) string {
		id, err := w.cast.MakeSnapshot(w.ctx, name, volume)
		w.mustNot(err)
		return id
	}
	calls := len(w.calls("CreateSnapshot"))
	first, second := made("first"), made("second")
	calls += 2

	content := w.content("first", first, "first")
	w.await("the content is ready before anybody asks for it", func() (bool, string) {
		c, err := w.readContent(content)
		if err != nil {
			return unreadable(err)
		}
		return c.Status != nil && ptr.Deref(c.Status.ReadyToUse, false), text(c)
	})
	w.given("first", content)
	later := w.cluster("second").Name
	w.given("second", later)
	w.told("second", "Warning SnapshotContentMissing")
	w.content("second", second, "second")
	for name, handle := range map[string]string{"first": first, "second": second} {
		v, c := w.ready(name)
		if ptr.Deref(c.Status.SnapshotHandle, "") != handle || c.Spec.VolumeSnapshotRef.UID != v.UID || v.Status.Error != nil {
			t.Errorf("snapshot %s: status %s, content %s", name, text(v.Status), text(c))
		}
		if !slices.Contains(c.Finalizers, contentHeld) || !slices.Contains(v.Finalizers, boundTo) {
			t.Errorf("snapshot %s: finalizers %q and %q", name, v.Finalizers, c.Finalizers)
		}
	}
	if got := len(w.calls("CreateSnapshot")); got != calls {
		t.Errorf("CreateSnapshot was called %d times more for snapshots that exist", got-calls)
	}
	w.claim("restore", w.class("class"), fromSnapshot("first"))
	w.bound("restore")
	w.deleteSnapshot("first")
	w.snapshotGone("first")
	w.contentGone(content)
	if slices.ContainsFunc(w.inventory().Snapshots, isSnapshot(first)) {
		t.Error("the driver still has the snapshot, and the policy was Delete")
	}
}

// TestRetainedSnapshots (S69, S71): with policy Retain the content and the data stay; when the policy is changed, both go.
func TestRetainedSnapshots(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{})
	volume := w.disk("data")
	id, err := w.cast.MakeSnapshot(w.ctx, "by-hand", volume)
	w.mustNot(err)
	given := w.content("given", id, "given", func(c *snapv1.VolumeSnapshotContent) { c.Spec.DeletionPolicy = snapv1.VolumeSnapshotContentRetain })
	w.given("given", given)
	w.snapshot("cut", "data", w.snapshotClass("keep", keeping))
	for _, name := range []string{"given", "cut"} {
		v, content := w.ready(name)
		if slices.Contains(v.Finalizers, boundTo) {
			t.Errorf("snapshot %s has finalizers %q, and nothing is to be waited for", name, v.Finalizers)
		}
		w.deleteSnapshot(name)
		w.snapshotGone(name)
		kept, err := w.readContent(content.Name)
		w.mustNot(err)
		if kept.DeletionTimestamp != nil || !slices.ContainsFunc(w.inventory().Snapshots, isSnapshot(*content.Status.SnapshotHandle)) {
			t.Errorf("what was to be kept of %s is going: %s", name, text(kept))
		}
		if calls := w.calls("DeleteSnapshot"); name == "given" && len(calls) > 0 {
			t.Error("DeleteSnapshot was called")
		}
		patchContent(w, content.Name, `{"spec":{"deletionPolicy":"Delete"}}`)
		w.deleteContent(content.Name)
		w.contentGone(content.Name)
		if slices.ContainsFunc(w.inventory().Snapshots, isSnapshot(*content.Status.SnapshotHandle)) {
			t.Errorf("the driver still has the snapshot of %s", name)
		}
	}
}

// TestThief (B007, S44, S45): who points at a content of somebody else gets nothing, and destroys nothing.
func TestThief(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{})
	w.disk("data")
	w.snapshot("snap", "data", w.snapshotClass("delete"))
	_, content := w.ready("snap")
	w.given("thief", content.Name)
	w.failed("thief", "VolumeSnapshotContent")
	w.deleteSnapshot("thief")
	w.snapshotGone("thief")
	v, again := w.ready("snap")
	if again.UID != content.UID || again.DeletionTimestamp != nil || v.Status.Error != nil {
		t.Errorf("the snapshot has suffered: %s, %s", text(v), text(again))
	}
	if calls := w.calls("DeleteSnapshot"); len(calls) > 0 {
		t.Error("DeleteSnapshot was called")
	}
}

// TestContentOfALivingSnapshotIsDeleted (S76): the content waits for its snapshot, and the data stays.
func TestContentOfALivingSnapshotIsDeleted(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{})
	w.disk("data")
	w.snapshot("snap", "data", w.snapshotClass("delete"))
	_, content := w.ready("snap")
	w.deleteContent(content.Name)
	// Something that is done later shows that there was time to go wrong.
	w.snapshot("later", "data", *content.Spec.VolumeSnapshotClassName)
	w.ready("later")
	if calls := w.calls("DeleteSnapshot"); len(calls) > 0 {
		t.Error("DeleteSnapshot was called for a snapshot that lives")
	}
	w.deleteSnapshot("snap")
	w.snapshotGone("snap")
	w.contentGone(content.Name)
}

// TestUnknownHandle (S47): a content whose handle the driver does not know says so, and is not ready.
func TestUnknownHandle(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{})
	name := w.content("lost", "no-such-handle", "lost")
	w.await("the content has an error", func() (bool, string) {
		c, err := w.readContent(name)
		if err != nil {
			return unreadable(err)
		}
		return c.Status != nil && c.Status.Error != nil && !ptr.Deref(c.Status.ReadyToUse, true), text(c.Status)
	})
	w.told(name, "Warning", "no-such-handle")
}

func isSnapshot(id string) func(backend.Snapshot) bool {
	return func(s backend.Snapshot) bool { return s.ID == id }
}
