// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"
)

// TestMemberOfAGroup (S91, S99, SW-14): the CRDs know status.volumeGroupSnapshotHandle, our client types do not, and no kinds of
// groups are installed. The field survives all that is written, binding and re-reading included, and what belongs to a
// group is not deleted by itself. A program that sends whole statuses erases the field, and then deletes the member.
func TestMemberOfAGroup(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{})
	volume := w.disk("data")
	id, err := w.cast.MakeSnapshot(w.ctx, "by-hand", volume)
	w.mustNot(err)
	handle := func(name string) string {
		raw, err := w.snaps.RESTClient().Get().Resource("volumesnapshotcontents").Name(name).Do(w.ctx).Raw()
		w.mustNot(err)
		_, after, found := strings.Cut(string(raw), `"volumeGroupSnapshotHandle":"`)
		if !found {
			return ""
		}
		value, _, _ := strings.Cut(after, `"`)
		return value
	}
	name := w.content("member", id, "member")
	w.await("the content is ready", func() (bool, string) {
		c, err := w.readContent(name)
		if err != nil {
			return unreadable(err)
		}
		return c.Status != nil && ptr.Deref(c.Status.ReadyToUse, false), text(c.Status)
	})
	// As the one that takes groups does.
	patchContentStatus(w, name, `{"status":{"volumeGroupSnapshotHandle":"group-1","readyToUse":false}}`)
	w.given("member", name)
	w.await("the status was written again, and is ready", func() (bool, string) {
		c, err := w.readContent(name)
		if err != nil {
			return unreadable(err)
		}
		return c.Status != nil && ptr.Deref(c.Status.ReadyToUse, false) && c.Spec.VolumeSnapshotRef.UID != "", text(c)
	})
	w.ready("member")
	if got := handle(name); got != "group-1" {
		t.Errorf("the group's handle is %q", got)
	}
	w.deleteSnapshot("member")
	w.snapshotGone("member")
	w.contentGone(name)
	if calls := w.calls("DeleteSnapshot"); len(calls) > 0 || !slices.ContainsFunc(w.inventory().Snapshots, isSnapshot(id)) {
		t.Errorf("a member was deleted by itself: %s", text(calls))
	}
	// Single snapshots work beside it, although no kind of group exists.
	w.snapshot("single", "data", w.snapshotClass("delete"))
	w.ready("single")
	w.mustNot(w.script.Forget(w.ctx, id)) // its group would have deleted it
}
