// SPDX-License-Identifier: Apache-2.0

package content

import (
	"context"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// paged is a client whose lists of contents have two pages: one content, and all others.
type paged struct {
	kube.Client
	first string
}

func (p paged) List(ctx context.Context, r kube.Resource, namespace string, options metav1.ListOptions) (runtime.Object, error) {
	answer, err := p.Client.List(ctx, r, namespace, options)
	list, ok := answer.(*kube.ContentList)
	if err != nil || !ok {
		return answer, err
	}
	all := list.Items
	list.Items = nil
	for i := range all {
		if (all[i].Name == p.first) == (options.Continue == "") {
			list.Items = append(list.Items, all[i])
		}
	}
	if options.Continue == "" {
		list.Continue = "next"
	}
	return list, nil
}

// Who has a snapshot may be on a later page of the list. Catches a room that reads the first one only, and deletes the data of a content that
// no cache shows yet.
func TestHolderOnALaterPage(t *testing.T) {
	h, c := lostOne(t)
	id := kit.SnapshotHandle("snapshot-" + string(c.Spec.VolumeSnapshotRef.UID))
	h.Restart()
	live(h, func(d *Deps) { d.Client = paged{d.Client, c.Name} })
	h.Stores.Hold()
	h.Put(kit.Content(kit.Snapshot("other", "data"), "", func(c *kube.Content) {
		c.Spec.Source = snapv1.VolumeSnapshotContentSource{SnapshotHandle: &id}
	}))
	before := len(h.Driver.Calls("DeleteSnapshot"))
	h.Horizon = time.Minute
	h.Settle()
	if calls := len(h.Driver.Calls("CreateSnapshot")); len(h.Driver.Calls("DeleteSnapshot")) != before || calls < 3 {
		t.Errorf("asked %d times, left %v\n%s", calls, h.Driver.Inventory(), h.Trace())
	}
}

// turning is a driver whose list has another page, and nothing on the first.
type turning struct{ Driver }

func (turning) ListSnapshots(context.Context, *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	return &csi.ListSnapshotsResponse{NextToken: "more"}, nil
}

// An empty page that is not the last says nothing of what is lost. Catches a room that takes another snapshot for one in the place of a lost one,
// and removes it, on the word of such a page.
func TestEmptyPageProvesNothing(t *testing.T) {
	h, _ := lostOne(t)
	h.Restart()
	live(h, func(d *Deps) { d.Driver = turning{d.Driver} })
	before := len(h.Driver.Calls("DeleteSnapshot"))
	h.Horizon = time.Minute
	h.Settle()
	if calls := len(h.Driver.Calls("CreateSnapshot")); len(h.Driver.Calls("DeleteSnapshot")) != before || calls < 3 {
		t.Errorf("asked %d times, left %v\n%s", calls, h.Driver.Inventory(), h.Trace())
	}
}
