// SPDX-License-Identifier: Apache-2.0

package content

import (
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
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
