// SPDX-License-Identifier: Apache-2.0

package content

import (
	"testing"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// neverPolled is an imported content that was deleted before any status of it was written, and that a third party holds.
func neverPolled(name string, mods ...func(*kube.Content)) *kube.Content {
	return kit.NamedContent(name, append([]func(*kube.Content){func(c *kube.Content) {
		c.Finalizers = []string{wellknown.FinalizerContent, "example.com/backup"}
		c.Spec.Source.SnapshotHandle = kit.Ptr(kit.SnapshotHandle("h1"))
	}}, mods...)...)
}

// TestSharedContentWithoutStatusThatOthersHold: a program that writes into the status takes it for granted that there is one, and ends
// here, again at each start. One that writes no status where none was, or does it again and again, never lets the content go; and one that
// only lets it go deletes the snapshot later, when the other content has been let go with its data.
func TestSharedContentWithoutStatusThatOthersHold(t *testing.T) {
	h, _ := start(t)
	h.Driver.PutSnapshot("h1", kit.VolumeHandle("pv"), 1<<30)
	keeper := neverPolled("keeper", func(c *kube.Content) {
		c.Finalizers, c.Spec.DeletionPolicy = []string{wellknown.FinalizerContent}, snapv1.VolumeSnapshotContentRetain
	})
	gone := neverPolled("gone", func(c *kube.Content) { kit.Deleted(c) })
	h.Put(keeper, gone)
	h.Horizon = time.Minute
	h.Settle()
	if got := now(h, gone); len(got.Finalizers) != 1 || got.Status == nil || got.Status.SnapshotHandle != nil || got.Status.ReadyToUse != nil {
		t.Errorf("%v %+v\n%s", got.Finalizers, got.Status, h.Trace())
	}
	if told := len(h.Recorder.Events()); told != 1 {
		t.Errorf("told %d times: %v", told, h.Recorder.Events())
	}
	kit.Remove[*kube.Content](h.API, kube.KeyOf(keeper))
	h.Restart()
	live(h)
	h.Settle()
	if len(h.Driver.Calls("DeleteSnapshot")) > 0 {
		t.Errorf("what was given up is deleted\n%s", h.Trace())
	}
}

// TestContentWithoutStatusIsDeletedOnce: what was deleted at the driver is on record also where nothing was before, or the next process
// deletes it again.
func TestContentWithoutStatusIsDeletedOnce(t *testing.T) {
	for name, status := range map[string]*snapv1.VolumeSnapshotContentStatus{
		"none":              nil,
		"an error only":     {ReadyToUse: kit.Ptr(false), Error: &snapv1.VolumeSnapshotError{Message: kit.Ptr("no")}},
		"without a handle":  {ReadyToUse: kit.Ptr(true)},
		"not ready, handle": {ReadyToUse: kit.Ptr(false), SnapshotHandle: kit.Ptr(kit.SnapshotHandle("h1"))},
	} {
		h, _ := start(t)
		h.Driver.PutSnapshot("h1", kit.VolumeHandle("pv"), 1<<30)
		gone := neverPolled("gone", func(c *kube.Content) {
			c.Status = status
			kit.Deleted(c)
		})
		h.Put(gone)
		h.Horizon = time.Minute
		h.Settle()
		h.Restart()
		live(h)
		h.Settle()
		if n := len(h.Driver.Calls("DeleteSnapshot")); n != 1 {
			t.Errorf("%s: deleted %d times\n%s", name, n, h.Trace())
		}
		if got := now(h, gone); len(got.Finalizers) != 1 || got.Finalizers[0] != "example.com/backup" {
			t.Errorf("%s: held by %v", name, got.Finalizers)
		}
	}
}
