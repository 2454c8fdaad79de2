// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"strings"
	"testing"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// Two binders of the same snapshots waste writes, and that must be all.
func TestTwoBindersHarmNothing(t *testing.T) {
	for lag := range 4 {
		h := kit.New(t)
		disk(h)
		h.Lag(lag)
		_, first := binder(h, Own)
		_, second := binder(h, Own)
		second.Name = "rival"
		h.Add(first, second, taker(h))
		for _, name := range everySnapshot {
			userTakes(name)(h)
		}
		h.Settle()
		for _, name := range everySnapshot {
			wantReady(name)(t, h)
		}
		if n := len(kit.All[*kube.Content](h.API)); n != len(everySnapshot) {
			t.Errorf("B087 %d contents", n)
		}
		for _, event := range h.Recorder.Events() {
			if strings.HasPrefix(event, "Warning") {
				t.Errorf("B087 shown to a user: %s", event)
			}
		}
		for _, name := range everySnapshot {
			userDeletes(name)(h)
		}
		h.Settle()
		wantNothing(t, h)
	}
}

// The caches of a new leader may lag behind what the old one has just made.
func TestNewLeaderWithOldCaches(t *testing.T) {
	h := kit.New(t)
	disk(h)
	both(h)
	userTakes("snap")(h)
	h.Settle()
	h.Restart()
	_, room := binder(h, Own)
	for _, c := range h.Stores.Contents.All() {
		h.Stores.Contents.Drop(c)
	}
	h.Add(room)
	userDeletes("snap")(h)
	h.Settle()
	if contents := kit.All[*kube.Content](h.API); len(contents) != 1 || contents[0].DeletionTimestamp == nil {
		t.Errorf("W10 a content that the cache does not show was orphaned:\n%s", strings.Join(h.Log.Lines(), "\n"))
	}
	if snap(t, h, "snap").DeletionTimestamp == nil {
		t.Error("the snapshot was not deleted at all")
	}
}
