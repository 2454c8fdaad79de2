// SPDX-License-Identifier: Apache-2.0

package content

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
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
