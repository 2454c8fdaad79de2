// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// tearOut deletes a snapshot as the API server does when the deletion had begun before our finalizers came.
func tearOut(h *kit.Harness) {
	kit.Edit(h.API, key("snap"), func(s *snapv1.VolumeSnapshot) { s.Finalizers = nil })
	userDeletes("snap")(h)
}

// TestSnapshotGoesUnderTheWork (S77, S82): a deletion that began before our finalizers were written ends after them. Whatever was
// made by then goes too. A program that trusts its finalizers leaves content and snapshot for ever; seen on a real server.
func TestSnapshotGoesUnderTheWork(t *testing.T) {
	for _, resource := range []string{"persistentvolumeclaims", "volumesnapshotcontents", "volumesnapshotcontents/status"} {
		for _, lag := range []int{0, 3} {
			h := kit.New(t)
			disk(h)
			h.Lag(lag)
			both(h)
			verb := "patch"
			if resource == "volumesnapshotcontents" {
				verb = "create"
			}
			h.API.Script(kit.Rule{Verb: verb, Resource: resource, Times: 1, Meanwhile: func() { tearOut(h) }})
			userTakes("snap")(h)
			h.Settle()
			wantNothing(t, h)
			if t.Failed() {
				t.Fatalf("before %s, caches behind by %d", resource, lag)
			}
		}
	}
}

// TestSnapshotGoesWhileTheDriverWorks: the outcome is awaited, and a lost answer of the create is looked for.
func TestSnapshotGoesWhileTheDriverWorks(t *testing.T) {
	h := kit.New(t)
	disk(h)
	both(h)
	h.Driver.Next("CreateSnapshot", kit.Reply{Code: codes.DeadlineExceeded, Done: true, Times: 2, Meanwhile: func() { tearOut(h) }})
	h.API.Lose("create", "volumesnapshotcontents", etcd, 1)
	h.API.Fail("delete", "volumesnapshotcontents", etcd, 2)
	userTakes("snap")(h)
	h.Settle()
	wantNothing(t, h)
}

// TestCopiedContentsStay: a content without snapshot was not seen to lose one, and is left alone; so is a retained one.
func TestCopiedContentsStay(t *testing.T) {
	h := kit.New(t)
	disk(h)
	h.Driver.PutSnapshot("copied", kit.VolumeHandle("pv-data"), 1<<30)
	h.Put(kit.Content(kit.Snapshot("elsewhere", "data"), kit.VolumeHandle("pv-data"), kit.Taken(kit.SnapshotHandle("copied")), func(c *kube.Content) {
		c.Finalizers = []string{wellknown.FinalizerContent}
	}))
	h.Put(kit.SnapshotClass(kit.SnapshotClassName, func(c *snapv1.VolumeSnapshotClass) { c.DeletionPolicy = snapv1.VolumeSnapshotContentRetain }))
	both(h)
	userTakes("snap")(h)
	h.Settle()
	tearOut(h)
	h.Settle()
	if n := len(kit.All[*kube.Content](h.API)); n != 2 || len(h.Driver.Calls("DeleteSnapshot")) > 0 {
		t.Errorf("%d contents; calls %v", n, h.Driver.Calls("DeleteSnapshot"))
	}
}
