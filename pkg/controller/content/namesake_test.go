// SPDX-License-Identifier: Apache-2.0

package content

import (
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// A list that finds a namesake where the content's snapshot was tells of it as one change. Catches a room that does not look again.
func TestNamesakeInAListWakesTheContent(t *testing.T) {
	h, c := start(t)
	content := bound(h)
	h.Settle()
	kit.Edit(h.API, kube.KeyOf(content), func(c *kube.Content) { now := metav1.Now(); c.DeletionTimestamp = &now })
	h.Settle()
	cached, ok := c.Contents.Lookup(kube.KeyOf(content))
	if !ok || cached.DeletionTimestamp == nil {
		t.Fatal("no leaving content in the cache")
	}
	before, ok := c.Snapshots.Lookup(snapshotKey(cached))
	if !ok {
		t.Fatal("no snapshot in the cache")
	}
	after := before.DeepCopy()
	after.UID, after.ResourceVersion, after.Status = "namesake", "999999", nil
	if keys := c.OnSnapshot(kube.Change[*snapv1.VolumeSnapshot]{Old: before, New: after}); len(keys) != 1 {
		t.Errorf("keys %v, want the content", keys)
	}
}

// A content that goes waits for a snapshot that has its data in it, although it refers to another, until that one names a content of its own. Catches a
// room that does not look again then.
func TestSnapshotThatTurnsAwayWakesTheContent(t *testing.T) {
	h, c := start(t)
	content := bound(h)
	h.Settle()
	kit.Edit(h.API, kube.KeyOf(content), func(c *kube.Content) { now := metav1.Now(); c.DeletionTimestamp = &now })
	h.Settle()
	before := &snapv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "other", UID: "other"}}
	before.Status = &snapv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: &content.Name}
	after, name := before.DeepCopy(), "another"
	after.Status.BoundVolumeSnapshotContentName = &name
	if keys := c.OnSnapshot(kube.Change[*snapv1.VolumeSnapshot]{Old: before, New: after}); len(keys) != 1 || keys[0].Name != content.Name {
		t.Errorf("keys %v, want the content", keys)
	}
}

// What was noted of a content that a list finds replaced goes with it. Catches a room that keeps it for as long as the process runs.
func TestNamesakeOfAContentIsForgotten(t *testing.T) {
	h, c := start(t)
	before := bound(h)
	h.Settle()
	c.remember(before.UID, snapshot.Attempt{Tried: snapshot.Settled})
	after := before.DeepCopy()
	after.UID = "namesake"
	c.OnContent(kube.Change[*kube.Content]{Old: before, New: after})
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, kept := c.attempts[before.UID]; kept {
		t.Error("kept")
	}
}
