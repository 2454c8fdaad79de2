// SPDX-License-Identifier: Apache-2.0

package content

import (
	"errors"
	"testing"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// onNode makes a process that serves one node, whose cache shows the content that goes, and another content of the same snapshot
// that no cache of this process shows.
func onNode(t *testing.T, mods ...func(*kube.Content)) *kit.Harness {
	t.Helper()
	h := kit.New(t)
	h.Put(kit.SnapshotClass(kit.SnapshotClassName))
	h.Driver.PutVolume("pv", 1<<30)
	h.Driver.PutSnapshot("h1", kit.VolumeHandle("pv"), 1<<30)
	narrow := kube.NewStore(kube.ContentIndexes())
	live(h, unseen, func(d *Deps) { d.Contents = narrow }).options.NodeDeployment = true
	going := kit.Content(kit.Snapshot("snap", "data"), kit.VolumeHandle("pv"), kit.Taken(kit.SnapshotHandle("h1")), func(c *kube.Content) {
		c.Finalizers = []string{wellknown.FinalizerContent}
		c.Labels = map[string]string{wellknown.LabelManagedBy: "n1"}
		kube.SetAnnotation(c, wellknown.AnnBeingDeleted, "yes")
		kit.Deleted(c)
	})
	h.Put(kit.NamedContent("other", append([]func(*kube.Content){func(o *kube.Content) {
		o.Finalizers = []string{wellknown.FinalizerContent}
		o.Spec.DeletionPolicy = snapv1.VolumeSnapshotContentRetain
		o.Spec.Source.SnapshotHandle = kit.Ptr(kit.SnapshotHandle("h1"))
	}}, mods...)...))
	narrow.Show(going)
	h.Put(going)
	return h
}

// TestNodeSeesWhoSharesASnapshot (I3): the cache of a process that serves one node does not hold the contents of others, nor those
// without a label. A program that asks it alone deletes what they keep.
func TestNodeSeesWhoSharesASnapshot(t *testing.T) {
	for name, row := range map[string]struct {
		mod     func(*kube.Content)
		deletes bool
	}{
		"without a label": {func(*kube.Content) {}, false},
		"another node's":  {func(o *kube.Content) { o.Labels = map[string]string{wellknown.LabelManagedBy: "n2"} }, false},
		"another handle":  {func(o *kube.Content) { o.Spec.Source.SnapshotHandle = kit.Ptr("x") }, true},
		"going":           {func(o *kube.Content) { kit.Deleted(o) }, true},
	} {
		h := onNode(t, row.mod)
		h.Settle()
		if deleted := len(h.Driver.Calls("DeleteSnapshot")) > 0; deleted != row.deletes {
			t.Errorf("%s: deleted at the driver: %v\n%s", name, deleted, h.Trace())
		}
		if left := len(kit.All[*kube.Content](h.API)); left != 1 {
			t.Errorf("%s: %d contents are left\n%s", name, left, h.Trace())
		}
	}
}

func TestNodeThatCannotSearchKeepsTheSnapshot(t *testing.T) {
	h := onNode(t)
	h.API.Fail("list", "volumesnapshotcontents", apierrors.NewInternalError(errors.New("etcd")), 3)
	h.Horizon = time.Second
	h.Settle()
	if len(h.Driver.Calls("DeleteSnapshot")) > 0 || len(kit.All[*kube.Content](h.API)) != 2 {
		t.Errorf("unknown is not no\n%s", h.Trace())
	}
}
