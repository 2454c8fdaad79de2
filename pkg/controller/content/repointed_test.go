// SPDX-License-Identifier: Apache-2.0

package content

import (
	"testing"
	"time"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// An imported content was led from one living snapshot to another, and the status of the first still names it; then the second is deleted. Catches a
// process without a cache of snapshots that does not look for the first, and deletes its data.
func TestAnotherSnapshotCountsOnTheContentOfOneThatGoes(t *testing.T) {
	for title, sees := range map[string]func(*Deps){"with a cache": func(*Deps) {}, "without": unseen} {
		t.Run(title, func(t *testing.T) {
			h, _ := start(t, sees)
			handle := h.Driver.PutSnapshot("h1", kit.VolumeHandle("pv"), 1<<30)
			second := kit.With(kit.Snapshot("second", "", kit.FromContent("k"), kit.BoundContent("k")), kit.Finalizers(wellknown.FinalizerSnapshotBound), kit.Deleted)
			h.Put(kit.Snapshot("first", "", kit.FromContent("k"), kit.BoundContent("k")), second)
			k := kit.NamedContent("k", kit.Taken(handle), func(c *kube.Content) {
				c.Finalizers = []string{wellknown.FinalizerContent}
				c.Spec.Source.SnapshotHandle = &handle
				c.Spec.VolumeSnapshotRef.Namespace, c.Spec.VolumeSnapshotRef.Name, c.Spec.VolumeSnapshotRef.UID = kit.Namespace, "second", second.UID
				kube.SetAnnotation(c, wellknown.AnnBeingDeleted, "yes")
				kit.Deleted(c)
			})
			h.Put(k)
			h.Horizon = time.Minute
			h.Settle()
			if len(h.Driver.Calls("DeleteSnapshot")) > 0 || now(h, k) == nil {
				t.Errorf("deleted at the driver: the status of a living snapshot still names the content\n%s", h.Trace())
			}
		})
	}
}
