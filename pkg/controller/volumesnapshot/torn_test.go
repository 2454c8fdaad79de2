// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/content"
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

// TestRetainedDataOutlivesAMissedEnd (S77, S82): a watch that missed the orderly end of a retained snapshot tells of it in the last
// state that it knew, which is not Terminating. The administrator has changed the policy since, so that the content can be thrown
// away some day. Catches a standby that takes the end for a torn one and deletes the data with the lead, and a program that does
// the same while it works.
func TestRetainedDataOutlivesAMissedEnd(t *testing.T) {
	for name, make := range map[string]func(*kit.Harness, Bind, ...func(*Deps)) (*Controller, kit.Room){"stands by": standby, "works": binder} {
		h := kit.New(t)
		disk(h)
		h.Put(kit.SnapshotClass(kit.SnapshotClassName, func(c *snapv1.VolumeSnapshotClass) { c.DeletionPolicy = snapv1.VolumeSnapshotContentRetain }))
		deaf, room := make(h, Own)
		both(h)
		userTakes("snap")(h)
		h.Settle()
		before := snap(t, h, "snap")
		userDeletes("snap")(h)
		h.Settle()
		kept := kit.All[*kube.Content](h.API)[0]
		kit.Edit(h.API, kube.KeyOf(kept), func(c *kube.Content) { c.Spec.DeletionPolicy = snapv1.VolumeSnapshotContentDelete })
		keys := deaf.OnSnapshot(kube.Change[*snapv1.VolumeSnapshot]{Old: before, Deleted: true})
		deaf.begin()
		for _, key := range append(keys, keyOf(before)) {
			if _, err := room.Reconcile(h.Ctx, key); err != nil {
				t.Fatal(err)
			}
		}
		h.Settle()
		if len(h.Driver.Calls("DeleteSnapshot")) > 0 || len(kit.All[*kube.Content](h.API)) != 1 {
			t.Errorf("%s: the data of a retained snapshot is lost\n%s", name, h.Trace())
		}
	}
}

// TestTornContentsOfOthersAreDeletedBeforeTheyAreMarked (S77, S95): a binder of all drivers dies anywhere while it takes apart what a
// snapshot has left that went under the work. Catches one that marks first: what is marked and lives is taken for retained.
func TestTornContentsOfOthersAreDeletedBeforeTheyAreMarked(t *testing.T) {
	kit.Crash(t, kit.Scenario{
		Program: func(h *kit.Harness) {
			_, room := binder(h, All)
			h.Add(room, taker(h, func(d *content.Deps) { d.Snapshots = nil }))
		},
		Check: wantNothing,
		World: func(h *kit.Harness) {
			disk(h)
			h.API.Script(kit.Rule{Verb: "create", Resource: "volumesnapshotcontents", Times: 1, Meanwhile: func() { tearOut(h) }})
		}, Users: []func(*kit.Harness){userTakes("snap")},
	})
}

// TestClaimWithoutProvisionerIsReleased (S77): a claim was protected for a snapshot that went under the work, and its volume was made
// by hand, so that no annotation names a driver. Catches a binder that goes by the annotations alone, with which the claim is
// Terminating for ever, and one that releases the claims of other drivers.
func TestClaimWithoutProvisionerIsReleased(t *testing.T) {
	for _, c := range []struct {
		name  string
		world func(*kit.Harness)
		stays bool
	}{
		{"the volume is of our driver", func(*kit.Harness) {}, false},
		{"the volume is of another driver", func(h *kit.Harness) {
			kit.Edit(h.API, kube.Key{Name: "pv-data"}, func(v *corev1.PersistentVolume) { v.Spec.CSI.Driver = "other.example" })
		}, true},
		{"the volume is of no CSI driver", func(h *kit.Harness) {
			kit.Edit(h.API, kube.Key{Name: "pv-data"}, func(v *corev1.PersistentVolume) { v.Spec.CSI = nil })
		}, false},
		{"the volume is gone", func(h *kit.Harness) { kit.Remove[*corev1.PersistentVolume](h.API, kube.Key{Name: "pv-data"}) }, false},
		{"there was never a volume", func(h *kit.Harness) {
			kit.Edit(h.API, key("data"), func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName, c.Status.Phase = "", "" })
		}, false},
	} {
		h := kit.New(t)
		disk(h)
		kit.Edit(h.API, key("data"), func(c *corev1.PersistentVolumeClaim) {
			c.Annotations, c.Finalizers = nil, []string{wellknown.FinalizerSourceClaim}
		})
		c.world(h)
		kit.Remove[*corev1.PersistentVolumeClaim](h.API, key("data"))
		both(h)
		h.Settle()
		if _, stays := kit.Read[*corev1.PersistentVolumeClaim](h.API, key("data")); stays != c.stays {
			t.Errorf("%s: claim is there: %t\n%s", c.name, stays, h.Trace())
		}
	}
	h := kit.New(t)
	disk(h)
	kit.Edit(h.API, key("data"), func(c *corev1.PersistentVolumeClaim) { c.Annotations = nil })
	both(h)
	h.API.Script(kit.Rule{Verb: "create", Resource: "volumesnapshotcontents", Times: 1, Meanwhile: func() { tearOut(h) }})
	userTakes("snap")(h)
	h.Settle()
	wantNothing(t, h)
}
