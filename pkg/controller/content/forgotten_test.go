// SPDX-License-Identifier: Apache-2.0

package content

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// madeAnew puts a content back without its status, as from a manifest.
func madeAnew(h *kit.Harness, c *kube.Content) {
	old := now(h, c)
	kit.Edit(h.API, kube.KeyOf(c), func(c *kube.Content) { c.Finalizers = nil })
	kit.Remove[*kube.Content](h.API, kube.KeyOf(c))
	h.Horizon = time.Minute
	h.Settle()
	again := old.DeepCopy()
	again.Status, again.UID, again.ResourceVersion = nil, "anew", ""
	h.Put(again)
	h.Settle()
}

func wiped(h *kit.Harness, c *kube.Content) {
	kit.Edit(h.API, kube.KeyOf(c), func(c *kube.Content) { c.Status = nil })
	h.Settle()
}

// TestForgottenHandleIsNotLeftAtTheDriver (I4): the content of a snapshot that was taken long ago does not know its handle, and the user gives up
// and deletes both. A program that deletes only what it has a handle of lets the content go and leaves the snapshot at the driver for ever.
func TestForgottenHandleIsNotLeftAtTheDriver(t *testing.T) {
	loses := map[string]func(*kit.Harness, *kube.Content){"made anew": madeAnew, "wiped": wiped}
	watches := map[string]func(*Deps){"watched": func(*Deps) {}, "not watched": unseen}
	for how, lose := range loses {
		for seen, mod := range watches {
			for _, dies := range []bool{false, true} {
				h, c := takenLongAgo(t, mod)
				lose(h, c)
				h.Horizon = 30 * time.Minute
				if dies {
					h.Restart()
					live(h, mod)
				}
				deleteBoth(h, c)
				mark(h, c)
				h.Settle()
				if left := h.Driver.Inventory(); len(left) != 1 || now(h, c) != nil {
					t.Errorf("%s, %s, dies %v: left %v, content %+v\n%s", how, seen, dies, left, now(h, c), h.Trace())
				}
			}
		}
	}
}

// TestForgottenHandleThatAnImportHas (I3): the snapshot was brought in again under another name before the old one was deleted, as the message
// advises. What the driver answers to the name is that content's.
func TestForgottenHandleThatAnImportHas(t *testing.T) {
	h, c := takenLongAgo(t)
	handle := *now(h, c).Status.SnapshotHandle
	madeAnew(h, c)
	h.Put(kit.NamedContent("import", func(o *kube.Content) { o.Spec.Source.SnapshotHandle = &handle }))
	deleteBoth(h, c)
	h.Horizon = 30 * time.Minute
	h.Settle()
	if len(h.Driver.Calls("DeleteSnapshot")) > 0 || now(h, c) != nil {
		t.Errorf("%v\n%s", h.Driver.Inventory(), h.Trace())
	}
}

// TestForgottenHandleThatNobodyCanTell: the driver does not say what it has. Then the content goes, but not without a word of what to look for.
func TestForgottenHandleThatNobodyCanTell(t *testing.T) {
	for _, code := range []codes.Code{codes.NotFound, codes.InvalidArgument, codes.PermissionDenied, codes.Internal} {
		h, c := takenLongAgo(t)
		madeAnew(h, c)
		h.Driver.Next("CreateSnapshot", kit.Reply{Code: code, Times: 1000})
		deleteBoth(h, c)
		h.Horizon = 30 * time.Minute
		h.Settle()
		told := strings.Join(h.Recorder.Events(), "\n")
		if !strings.Contains(told, `look there for one named "snapshot-`+string(c.Spec.VolumeSnapshotRef.UID)+`" of volume "`) || now(h, c) != nil {
			t.Errorf("%s: content %+v, told %s\n%s", code, now(h, c), told, h.Trace())
		}
	}
}

// TestForgottenHandleOfALivingSnapshot (I3): only the content is deleted. Nothing is asked for by the name, or other data would stand under
// the old creation time.
func TestForgottenHandleOfALivingSnapshot(t *testing.T) {
	h, c := takenLongAgo(t)
	madeAnew(h, c)
	kit.Remove[*kube.Content](h.API, kube.KeyOf(c))
	h.Horizon = 30 * time.Minute
	h.Settle()
	if len(h.Driver.Calls()) != 1 || now(h, c) == nil {
		t.Errorf("asked, or let go\n%s", h.Trace())
	}
}
