// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"fmt"
	"strings"
	"testing"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestSizeThatTheDriverDoesNotTell (S63): unknown is absent, on both objects; zero would be compared with what restores ask for.
func TestSizeThatTheDriverDoesNotTell(t *testing.T) {
	h := kit.New(t)
	disk(h)
	h.Driver.Omit.Size = true
	both(h)
	userTakes("snap")(h)
	h.Settle()
	wantReady("snap")(t, h)
	if c, s := only(t, h), snap(t, h, "snap"); c.Status.RestoreSize != nil || s.Status.RestoreSize != nil {
		t.Errorf("sizes %v and %v", c.Status.RestoreSize, s.Status.RestoreSize)
	}
}

// TestRestoreOfANamesakeElsewhere (S86): only a claim that names this very snapshot holds its deletion.
func TestRestoreOfANamesakeElsewhere(t *testing.T) {
	h := kit.New(t)
	disk(h)
	both(h)
	userTakes("snap")(h)
	elsewhere := kit.Claim("restored", kit.FromSnapshot("snap"))
	elsewhere.Namespace = "other"
	foreign := kit.Claim("foreign", kit.FromSnapshot("snap"))
	foreign.Spec.DataSource.APIGroup = kit.Ptr("snapshots.example.com")
	foreign.Spec.DataSourceRef = nil
	h.Put(elsewhere, foreign)
	h.Settle()
	wantReady("snap")(t, h)
	h.Horizon = time.Second
	userDeletes("snap")(h)
	h.Settle()
	wantNothing(t, h)
	if n := h.Recorder.Count("Normal SnapshotDeletePending Snapshot is being used to restore a PVC: other/restored"); n > 0 {
		t.Errorf("%v", h.Recorder.Events())
	}
}

// TestRetainedContentIsBoundAgain (S50, W20, B059): users are told which field to clear, and that is all there is to do. A
// program that keeps the mark of the content's first life deletes the data with the content later, under a living snapshot.
func TestRetainedContentIsBoundAgain(t *testing.T) {
	h := kit.New(t)
	disk(h)
	h.Put(kit.NamedContent("old", func(c *kube.Content) { c.Spec.DeletionPolicy = snapv1.VolumeSnapshotContentRetain }))
	h.Driver.PutSnapshot("old", kit.VolumeHandle("pv-data"), 1<<30)
	both(h)
	given := func() {
		s := kit.Snapshot("data-snapshot", "", kit.FromContent("old"))
		s.UID = "" // each has its own
		h.Put(s)
		h.Settle()
	}
	given()
	wantReady("data-snapshot")(t, h)
	userDeletes("data-snapshot")(h)
	h.Settle()
	h.Horizon = time.Minute
	given()
	s := snap(t, h, "data-snapshot")
	if s.Status == nil || s.Status.Error == nil || !strings.Contains(*s.Status.Error.Message, "clear that field of VolumeSnapshotContent old") {
		t.Fatalf("which field: %+v", s.Status)
	}
	kit.Edit(h.API, kube.Key{Name: "old"}, func(c *kube.Content) { c.Spec.VolumeSnapshotRef.UID = "" })
	h.Settle()
	wantReady("data-snapshot")(t, h)
	if c := only(t, h); c.Annotations[wellknown.AnnBeingDeleted] != "" || c.Spec.VolumeSnapshotRef.UID != s.UID {
		t.Errorf("bound again: %v %v", c.Annotations, c.Spec.VolumeSnapshotRef)
	}
	kit.Edit(h.API, kube.Key{Name: "old"}, func(c *kube.Content) { c.Spec.DeletionPolicy = snapv1.VolumeSnapshotContentDelete })
	kit.Remove[*kube.Content](h.API, kube.Key{Name: "old"})
	h.Settle()
	if len(h.Driver.Calls("DeleteSnapshot")) > 0 {
		t.Error("W18 the data of a living snapshot is gone")
	}
}

// TestMissedEventIsMadeUp (B047): the cache took a change in and its event was lost. The next resync, which shows the same
// object once more, makes up for it in both rooms; a filter that drops what has not changed would not.
func TestMissedEventIsMadeUp(t *testing.T) {
	h := kit.New(t)
	disk(h)
	c, room := binder(h, Own)
	h.Driver.ReadyAfter = 3 // or the first look would find it ready
	lost := false
	keys := room.Keys
	room.Keys = func(change kit.Change) []reconcile.Key {
		if lost {
			return nil
		}
		return keys(change)
	}
	h.Add(room, taker(h))
	lost = true
	userTakes("snap")(h)
	h.Settle()
	if s := snap(t, h, "snap"); s.Status != nil || len(s.Finalizers) > 0 {
		t.Fatalf("the event was not lost: %+v", s)
	}
	s, _ := h.Stores.Snapshots.Lookup(key("snap"))
	for _, k := range c.OnSnapshot(kube.Change[*snapv1.VolumeSnapshot]{Old: s, New: s}) {
		h.Enqueue("binder", k)
	}
	h.Settle()
	if isReady(snap(t, h, "snap")) {
		t.Fatal("the second event was not lost")
	}
	content, _ := h.Stores.Contents.Lookup(kube.KeyOf(only(t, h)))
	for _, k := range c.OnContent(kube.Change[*kube.Content]{Old: content, New: content}) {
		h.Enqueue("binder", k)
	}
	h.Settle()
	wantReady("snap")(t, h)
}

// TestStartWithThousands (B023, S102): a process that begins in a cluster full of settled snapshots asks and writes nothing
// for them, and takes a new one at once. Twenty thousand of them are for CSI_TANDEM_FULL=1.
func TestStartWithThousands(t *testing.T) {
	h := kit.New(t)
	disk(h)
	many := 2000
	if full() {
		many = 20000
	}
	settled(h, many)
	h.MaxTurns = 10 * many
	both(h)
	h.Settle()
	if requests := h.API.Requests(); len(requests) > 0 || len(h.Driver.Calls()) > 0 {
		t.Errorf("%d requests, the first is %s; calls %v", len(requests), requests[0], h.Driver.Calls())
	}
	userTakes("new")(h)
	h.Horizon = 2 * time.Second
	h.Settle()
	wantReady("new")(t, h)
	if claim, _ := kit.Read[*corev1.PersistentVolumeClaim](h.API, key("data")); len(claim.Finalizers) > 0 {
		t.Errorf("the claim is held: %v", claim.Finalizers)
	}
}

// settled puts many snapshots that are ready.
func settled(h *kit.Harness, many int) {
	for i := range many {
		name := fmt.Sprint("old", i)
		s := kit.Snapshot(name, "data", func(s *snapv1.VolumeSnapshot) {
			s.Finalizers = []string{wellknown.FinalizerSnapshotSource, wellknown.FinalizerSnapshotBound}
		})
		content := kit.Content(s, kit.VolumeHandle("pv-data"), kit.Taken("h-"+name), func(c *kube.Content) {
			c.Finalizers = []string{wellknown.FinalizerContent}
		})
		kit.BoundContent(content.Name)(s)
		h.Put(s, content)
	}
}

// TestNewSnapshotBehindAResync (B027): every settled snapshot and content is in the queues before a new one comes. None of them
// costs a request or a call, so that the new one waits for no answer but its own. One that makes sure of settled ones live, or
// writes what is there already, makes it wait for thousands of answers.
func TestNewSnapshotBehindAResync(t *testing.T) {
	h := kit.New(t)
	disk(h)
	const many = 500
	settled(h, many)
	h.MaxTurns = 20 * many
	c, room := binder(h, Own)
	work := taker(h)
	h.Add(room, work)
	h.Settle()
	turns, old := 0, map[string]bool{}
	for _, s := range h.Stores.Snapshots.All() {
		old[s.Name] = true
		for _, k := range c.OnSnapshot(kube.Change[*snapv1.VolumeSnapshot]{Old: s, New: s}) {
			h.Enqueue(room.Name, k)
			turns++
		}
	}
	for _, content := range h.Stores.Contents.All() {
		old[content.Name] = true
		for _, k := range work.Keys(kit.Change{Resource: kube.ResourceOf[*kube.Content](), Old: content, New: content}) {
			h.Enqueue(work.Name, k)
			turns++
		}
	}
	if turns < many {
		t.Fatalf("%d keys of a resync of %d snapshots: it is not what it says", turns, many)
	}
	userTakes("new")(h)
	h.Horizon = 2 * time.Second
	h.Settle()
	wantReady("new")(t, h)
	for _, request := range h.API.Requests() {
		if old[request.Key.Name] {
			t.Errorf("B027: %s", request)
		}
	}
	if calls := h.Driver.Calls(); len(calls) != 1 {
		t.Errorf("B027: %d calls for one new snapshot", len(calls))
	}
}
