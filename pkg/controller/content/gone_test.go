// SPDX-License-Identifier: Apache-2.0

package content

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// A content that went with our last write stays in the cache until the watch tells of it, and its snapshot's end asks to look at
// it meanwhile. Catches a room that reads it live then, and finds nothing: a tenth of all deletions cost a read more.
func TestContentThatWentIsNotReadAgain(t *testing.T) {
	h, c := start(t)
	content := bound(h)
	h.Settle()
	deleteBoth(h, content)
	before := len(h.API.Requests())
	h.Stores.Hold()
	for range 3 {
		if _, err := c.Reconcile(h.Ctx, reconcile.Key{Name: content.Name}); err != nil {
			t.Error(err)
		}
	}
	var asked []string
	for _, r := range h.API.Requests()[before:] {
		if r.Resource == "volumesnapshotcontents" {
			asked = append(asked, r.Verb)
		}
	}
	if diff := cmp.Diff([]string{"get", "patch"}, asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	h.Stores.Sync()
	h.Settle()
	if c.Contents.HasGone(content) || len(c.attempts) > 0 {
		t.Errorf("remembered: %v, or as gone", c.attempts)
	}
}

// A content that goes while a call for it is under way is forgotten, although the watch has told of its end before the answer. Catches a
// room that notes the answer and never hears of the content again.
func TestContentThatGoesDuringTheLook(t *testing.T) {
	h, c := start(t)
	content := bound(h)
	h.Settle()
	deleteBoth(h, content)
	h.Driver.Next("DeleteSnapshot", kit.Reply{Meanwhile: func() {
		kit.Edit(h.API, kube.KeyOf(content), func(c *kube.Content) { c.Finalizers = nil })
		c.OnContent(kube.Change[*kube.Content]{Old: content, Deleted: true})
	}})
	if _, err := c.Reconcile(h.Ctx, reconcile.Key{Name: content.Name}); err != nil {
		t.Error(err)
	}
	if len(h.Driver.Calls("DeleteSnapshot")) != 1 || len(c.attempts) > 0 {
		t.Errorf("%d calls, remembered: %v", len(h.Driver.Calls("DeleteSnapshot")), c.attempts)
	}
}
