// SPDX-License-Identifier: Apache-2.0

package content

import (
	"errors"
	"strings"
	"testing"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// crowded starts the process anew before a driver where each deletion has to wait, and lets something happen meanwhile, once.
func crowded(h *kit.Harness, meanwhile func()) {
	h.Restart()
	live(h, func(d *Deps) {
		d.Driver = kit.Crowd(h, func() {
			if do := meanwhile; do != nil {
				meanwhile = nil
				do()
			}
		})
	})
}

// A deletion waits for its turn, and what was read before it is old by then. Catches a room that deletes on the strength of that what is kept by now,
// one that never deletes what it has to wait for, and one that tells an error because something has changed.
func TestTurnOfADeletion(t *testing.T) {
	ready := func(t *testing.T) (*kit.Harness, *kube.Content) {
		h, _ := start(t)
		c := bound(h)
		h.Settle()
		return h, c
	}
	renamed := func(t *testing.T) (*kit.Harness, *kube.Content) {
		h, c := lister(t)
		h.Driver.Next("CreateSnapshot", kit.Reply{Snapshot: underAnotherID})
		h.Horizon = 0
		h.Settle()
		return h, c
	}
	nothing := func(*kit.Harness, *kube.Content) {}
	retain := func(h *kit.Harness, c *kube.Content) {
		kit.Edit(h.API, kube.KeyOf(c), func(c *kube.Content) { c.Spec.DeletionPolicy = snapv1.VolumeSnapshotContentRetain })
	}
	bringIn := func(h *kit.Harness, c *kube.Content) {
		h.Put(kit.Content(kit.Snapshot("other", "data"), "", func(other *kube.Content) {
			other.Spec.Source = snapv1.VolumeSnapshotContentSource{SnapshotHandle: now(h, c).Status.SnapshotHandle}
		}))
	}
	for title, c := range map[string]struct {
		world     func(t *testing.T) (*kit.Harness, *kube.Content)
		meanwhile func(h *kit.Harness, c *kube.Content)
		left      int
	}{
		"nothing happens":                                 {ready, nothing, 0},
		"it is retained":                                  {ready, retain, 1},
		"it is brought in a second time":                  {ready, bringIn, 1},
		"under another id, and nothing happens":           {renamed, nothing, 0},
		"under another id, and the content keeps its own": {renamed, retain, 1},
	} {
		t.Run(title, func(t *testing.T) {
			h, content := c.world(t)
			happened := false
			crowded(h, func() { happened = true; c.meanwhile(h, content) })
			deleteBoth(h, content)
			h.Horizon = time.Minute
			h.Settle()
			events := strings.Join(h.Recorder.Events(), "\n")
			if n := snapshotsAt(h); !happened || n != c.left || now(h, content) != nil || strings.Contains(events, errChanged.Error()) {
				t.Errorf("happened %v, %d left, %v\n%s\n%s", happened, n, h.State(), events, h.Trace())
			}
		})
	}
}

// What was taken in the place of a lost snapshot waits for its removal, and somebody tears the content out meanwhile. Catches a room for which the
// removal is over with the content: nobody else knows of what it is about.
func TestReplacementGoesWithoutItsContent(t *testing.T) {
	h, c := lostOne(t)
	happened := false
	crowded(h, func() {
		happened = true
		kit.Edit(h.API, kube.KeyOf(c), func(c *kube.Content) { c.Finalizers = nil })
		deleteBoth(h, c)
	})
	h.Horizon = time.Minute
	h.Settle()
	if n := snapshotsAt(h); !happened || n != 0 || now(h, c) != nil {
		t.Errorf("happened %v, %d left\n%s", happened, n, h.Trace())
	}
}

// The cache still shows the content of another that had the handle and is gone. Catches a room that believes the cache, and keeps what was taken
// for a holder that there is not.
func TestReplacementAsksWhetherTheHolderIsThere(t *testing.T) {
	h, c := lostOne(t)
	id := kit.SnapshotHandle("snapshot-" + string(c.Spec.VolumeSnapshotRef.UID))
	other := kit.Content(kit.Snapshot("other", "data"), "", func(c *kube.Content) {
		c.Spec.Source = snapv1.VolumeSnapshotContentSource{SnapshotHandle: &id}
		c.Finalizers = nil
	})
	h.Put(other)
	h.Stores.Sync()
	h.Stores.Hold()
	kit.Remove[*kube.Content](h.API, kube.KeyOf(other))
	h.Horizon = time.Minute
	h.Settle()
	if n := snapshotsAt(h); n != 0 {
		t.Errorf("%d left, of which no object knows\n%s", n, h.Trace())
	}
}

// What has to be read before a deletion cannot be. Catches a room that takes "unknown" for "no", before a wait for its turn and after it.
func TestUnknownIsNotNo(t *testing.T) {
	trouble := func(h *kit.Harness, resource, name string) {
		h.API.Script(kit.Rule{Verb: "get", Resource: resource, Name: name, Err: apierrors.NewInternalError(errors.New("etcd"))})
	}
	t.Run("the content, after the wait", func(t *testing.T) {
		h, _ := start(t)
		c := bound(h)
		h.Settle()
		happened := false
		crowded(h, func() { happened = true; trouble(h, "volumesnapshotcontents", c.Name) })
		deleteBoth(h, c)
		h.Horizon = time.Minute
		h.Settle()
		if !happened || len(h.Driver.Calls("DeleteSnapshot")) != 0 || now(h, c) == nil {
			t.Errorf("happened %v\n%s", happened, h.Trace())
		}
	})
	t.Run("a snapshot that counts on it", func(t *testing.T) {
		h, _ := start(t)
		c := bound(h)
		h.Settle()
		kit.Edit(h.API, kube.Key{Namespace: kit.Namespace, Name: "snap"}, kit.BoundContent(c.Name))
		kit.Edit(h.API, kube.KeyOf(c), func(c *kube.Content) { c.Spec.VolumeSnapshotRef.Name = "x" })
		trouble(h, "volumesnapshots", "snap")
		kit.Remove[*kube.Content](h.API, kube.KeyOf(c))
		h.Horizon = time.Minute
		h.Settle()
		if len(h.Driver.Calls("DeleteSnapshot")) != 0 || now(h, c) == nil {
			t.Errorf("deleted\n%s", h.Trace())
		}
	})
}
