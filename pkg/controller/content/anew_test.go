// SPDX-License-Identifier: Apache-2.0

package content

import (
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// takenLongAgo is a world in which a snapshot was taken, and a week has gone by.
func takenLongAgo(t *testing.T, mods ...func(*Deps)) (*kit.Harness, *kube.Content) {
	t.Helper()
	h, _ := start(t, mods...)
	c := bound(h)
	h.Settle()
	at := metav1.NewTime(time.Unix(0, *now(h, c).Status.CreationTime))
	kit.Edit(h.API, kube.Key{Namespace: kit.Namespace, Name: "snap"}, func(s *snapv1.VolumeSnapshot) {
		s.Status = &snapv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: &c.Name, ReadyToUse: kit.Ptr(true), CreationTime: &at}
	})
	h.Settle()
	h.Clock.Step(7 * 24 * time.Hour)
	return h, c
}

// TestContentMadeAnewIsNotTakenAgain: the content of an old snapshot is applied from a manifest, which has no status. A program that takes
// what has no handle puts the data of today under the creation time of then, and everybody who restores from it gets that.
func TestContentMadeAnewIsNotTakenAgain(t *testing.T) {
	for name, lost := range map[string]bool{"the driver has lost it": true, "the driver has it": false, "lost, seen without a cache": true, "without a cache": false} {
		var mods []func(*Deps)
		if strings.Contains(name, "cache") {
			mods = append(mods, unseen)
		}
		h, c := takenLongAgo(t, mods...)
		old := now(h, c)
		kit.Edit(h.API, kube.KeyOf(c), func(c *kube.Content) { c.Finalizers = nil })
		kit.Remove[*kube.Content](h.API, kube.KeyOf(c))
		if lost {
			if err := h.Driver.DeleteSnapshot(h.Ctx, &csi.DeleteSnapshotRequest{SnapshotId: *old.Status.SnapshotHandle}); err != nil {
				t.Fatal(err)
			}
		}
		h.Settle()
		again := old.DeepCopy()
		again.Status, again.UID, again.ResourceVersion = nil, "anew", ""
		h.Put(again)
		h.Horizon = time.Minute
		h.Settle()
		if n := len(h.Driver.Calls("CreateSnapshot")); n != 1 {
			t.Errorf("%s: taken %d times\n%s", name, n, h.Trace())
		}
		if got := now(h, c); got.Status == nil || got.Status.Error == nil || !strings.Contains(*got.Status.Error.Message, "was taken at") {
			t.Errorf("%s: %+v", name, got.Status)
		}
		kit.Edit(h.API, kube.KeyOf(c), func(c *kube.Content) {
			kube.SetAnnotation(c, "snapshot.storage.kubernetes.io/volumesnapshot-being-created", "yes")
		})
		h.Horizon = 10 * time.Minute
		h.Settle()
		got := now(h, c)
		if got.Status.Error != nil || got.Status.SnapshotHandle == nil || (*got.Status.CreationTime == *old.Status.CreationTime) == lost {
			t.Errorf("%s: asked for by its name: %+v", name, got.Status)
		}
	}
}

// TestRemedyIsHeardOf: users do what the messages advise, and put on the mark, or correct the parameters on record. A program that takes that for its own
// write lets them wait for the next try, and think that it does not help.
func TestRemedyIsHeardOf(t *testing.T) {
	for name, row := range map[string]struct {
		spoils func(*kit.Harness, *kube.Content)
		edit   func(*kube.Content)
	}{
		"mark": {madeAnew, func(c *kube.Content) { kube.SetAnnotation(c, wellknown.AnnBeingCreated, "yes") }},
		"parameters": {func(h *kit.Harness, c *kube.Content) {
			spoilt := kit.Content(kit.Snapshot("other", "data"), kit.VolumeHandle("pv"), func(o *kube.Content) {
				o.Name = c.Name
				o.Spec.VolumeSnapshotClassName = kit.Ptr(kit.SnapshotClassName)
				o.Annotations = map[string]string{wellknown.AnnSnapshotParameters: "tier: gold"}
			})
			kit.Edit(h.API, kube.KeyOf(c), func(c *kube.Content) { c.Finalizers = nil })
			kit.Remove[*kube.Content](h.API, kube.KeyOf(c))
			h.Settle()
			h.Put(spoilt)
		}, func(c *kube.Content) { kube.SetAnnotation(c, wellknown.AnnSnapshotParameters, "{}") }},
	} {
		h, c := takenLongAgo(t)
		row.spoils(h, c)
		h.Horizon = 20 * time.Minute
		h.Settle()
		if got := now(h, c); got.Status == nil || got.Status.Error == nil {
			t.Fatalf("%s: no error: %+v", name, got.Status)
		}
		h.Horizon = 100 * time.Millisecond
		kit.Edit(h.API, kube.KeyOf(c), row.edit)
		h.Settle()
		if got := now(h, c); got.Status.Error != nil || got.Status.SnapshotHandle == nil {
			t.Errorf("%s: nobody has looked: %+v", name, got.Status)
		}
	}
}

// TestOldCopyIsNotTakenForALostHandle: the cache of contents is far behind that of snapshots. A program that believes it writes an error
// into a content that is ready.
func TestOldCopyIsNotTakenForALostHandle(t *testing.T) {
	h, c := takenLongAgo(t)
	h.Log.Clear()
	h.Restart()
	h.Stores.Hold()
	behind := now(h, c).DeepCopy()
	behind.Status, behind.ResourceVersion = nil, "1"
	room := live(h, func(d *Deps) {
		d.Contents = kube.NewStore(kube.ContentIndexes())
		d.Contents.Show(behind)
	})
	h.Horizon = time.Minute
	h.Settle()
	if _, err := room.Reconcile(h.Ctx, reconcile.Key{Name: c.Name}); err != nil {
		t.Error(err)
	}
	for _, line := range h.Log.Lines() {
		if strings.HasPrefix(line, "patch") {
			t.Errorf("written: %s", line)
		}
	}
}
