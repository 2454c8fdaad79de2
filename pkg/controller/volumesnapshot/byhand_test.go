// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// A content was torn out, was seen to go, and was made anew; the cache of contents is behind when the snapshot is deleted. Catches a binder that
// lets the snapshot go because it once saw the end of its content.
func TestMadeAnewAfterItWasSeenToGo(t *testing.T) {
	h := kit.New(t)
	disk(h)
	both(h)
	userTakes("snap")(h)
	h.Settle()
	s := snap(t, h, "snap")
	name := *s.Status.BoundVolumeSnapshotContentName
	old, _ := kit.Read[*kube.Content](h.API, kube.Key{Name: name})
	h.Restart()
	contents := kube.NewStore(kube.ContentIndexes())
	contents.Show(old)
	c, _ := binder(h, Own, func(d *Deps) { d.Contents = contents })
	c.Stance.Look(h.Ctx)
	kit.Edit(h.API, kube.Key{Name: name}, func(o *kube.Content) { o.Finalizers = nil })
	kit.Remove[*kube.Content](h.API, kube.Key{Name: name})
	contents.Drop(old)
	c.OnContent(kube.Change[*kube.Content]{Old: old, Deleted: true})
	h.Clock.Step(time.Hour)
	again := old.DeepCopy()
	again.UID, again.ResourceVersion, again.CreationTimestamp = "anew", "", metav1.NewTime(h.Clock.Now())
	h.Put(again) // the cache does not show it yet
	userDeletes("snap")(h)
	if _, err := c.Reconcile(h.Ctx, reconcile.Key{Namespace: kit.Namespace, Name: "snap"}); err != nil {
		t.Error(err)
	}
	// Now all caches catch up, and the whole program works on.
	h.Restart()
	both(h)
	h.Horizon = time.Hour
	h.Settle()
	wantNothing(t, h)
}

// The content is torn out under our write. Catches a look that makes it again and again.
func TestBurstOfCreates(t *testing.T) {
	h := kit.New(t)
	disk(h)
	c, _ := binder(h, Own)
	c.Stance.Look(h.Ctx)
	userTakes("snap")(h)
	k := reconcile.Key{Namespace: kit.Namespace, Name: "snap"}
	if _, err := c.Reconcile(h.Ctx, k); err != nil {
		t.Fatal(err)
	}
	content := kit.All[*kube.Content](h.API)[0]
	kit.Edit(h.API, kube.KeyOf(content), func(o *kube.Content) { o.Finalizers = nil })
	h.Stores.Hold()
	kit.Remove[*kube.Content](h.API, kube.KeyOf(content))
	before := len(h.API.Requests())
	if _, err := c.Reconcile(h.Ctx, k); err != nil {
		t.Error(err)
	}
	counts := map[string]int{}
	for _, r := range h.API.Requests()[before:] {
		counts[r.Verb+" "+r.Resource]++
	}
	if counts["create volumesnapshotcontents"] != 1 {
		t.Errorf("requests of one look: %v", counts)
	}
}

// The class of a snapshot without a content becomes that of another driver, which has no snapshotter, and the snapshot is deleted. Catches one that stays
// Terminating because each binder takes it for that of another.
func TestClassBecomesForeign(t *testing.T) {
	for title, first := range map[string]func(h *kit.Harness){
		"the claim waits": func(h *kit.Harness) {
			h.Put(kit.Claim("data"), kit.SnapshotClass(kit.SnapshotClassName))
		},
		"the content was refused": func(h *kit.Harness) {
			disk(h)
			h.API.Deny("create", "volumesnapshotcontents")
		},
	} {
		h := kit.New(t)
		first(h)
		both(h)
		userTakes("snap")(h)
		h.Horizon = 10 * time.Second
		h.Settle()
		if s := snap(t, h, "snap"); len(s.Finalizers) == 0 {
			t.Log(title, "no finalizers")
		}
		kit.Remove[*snapv1.VolumeSnapshotClass](h.API, kube.Key{Name: kit.SnapshotClassName})
		h.Put(kit.SnapshotClass(kit.SnapshotClassName, func(c *snapv1.VolumeSnapshotClass) { c.Driver = "other.example" }))
		h.Horizon = 10 * time.Minute
		h.Settle()
		userDeletes("snap")(h)
		h.Horizon = 2 * time.Hour
		h.Settle()
		if s, ok := kit.Read[*snapv1.VolumeSnapshot](h.API, key("snap")); ok {
			claim, _ := kit.Read[*corev1.PersistentVolumeClaim](h.API, key("data"))
			t.Errorf("%s: still Terminating after two hours: %v, claim %v", title, s.Finalizers, claim.Finalizers)
		}
	}
}

// Somebody edits what the status says of the binding. Catches a binder that leaves it so.
func TestBoundNameEdited(t *testing.T) {
	h := kit.New(t)
	disk(h)
	both(h)
	userTakes("snap")(h)
	h.Settle()
	want := *snap(t, h, "snap").Status.BoundVolumeSnapshotContentName
	kit.Edit(h.API, key("snap"), func(s *snapv1.VolumeSnapshot) { s.Status.BoundVolumeSnapshotContentName = kit.Ptr("wrong") })
	h.Settle()
	if s := snap(t, h, "snap"); *s.Status.BoundVolumeSnapshotContentName != want {
		t.Errorf("bound to %s, ready %v, error %v, events %v", *s.Status.BoundVolumeSnapshotContentName, *s.Status.ReadyToUse, s.Status.Error, h.Recorder.Events())
	}
	userDeletes("snap")(h)
	h.Settle()
	wantNothing(t, h)
}

// The claim was made anew on a volume of another driver, class and content are gone, and the snapshot is deleted. Catches one that stays Terminating.
func TestClaimBecomesForeign(t *testing.T) {
	h := kit.New(t)
	disk(h)
	both(h)
	userTakes("snap")(h)
	h.Settle()
	c := kit.All[*kube.Content](h.API)[0]
	h.Restart()
	kit.Edit(h.API, kube.KeyOf(c), func(o *kube.Content) { o.Finalizers = nil })
	kit.Remove[*kube.Content](h.API, kube.KeyOf(c))
	kit.Remove[*snapv1.VolumeSnapshotClass](h.API, kube.Key{Name: kit.SnapshotClassName})
	kit.Remove[*corev1.PersistentVolumeClaim](h.API, key("data"))
	claim := kit.Claim("data", kit.BoundTo("pv-x"))
	claim.UID = "anew"
	h.Put(claim, kit.Volume("pv-x", kit.ClaimedBy(claim), func(v *corev1.PersistentVolume) { v.Spec.CSI.Driver = "other.example" }))
	both(h)
	userDeletes("snap")(h)
	h.Horizon = 2 * time.Hour
	h.Settle()
	if s, ok := kit.Read[*snapv1.VolumeSnapshot](h.API, key("snap")); ok {
		t.Errorf("still Terminating after two hours: %v", s.Finalizers)
	}
}

// The watch was away while a snapshot ended and another one got its name, which alone a list shows. Catches a binder that remembers the first for ever.
func TestNamesakeInAList(t *testing.T) {
	h := kit.New(t)
	disk(h)
	c, _ := binder(h, Own)
	c.Stance.Look(h.Ctx)
	userTakes("snap")(h)
	first := snap(t, h, "snap")
	c.remember(first.UID, goneContent{driver: kit.DriverName})
	c.neglected.add(first.UID, neglect{kit.DriverName, false})
	second := first.DeepCopy()
	second.UID, second.ResourceVersion = "another", "99999"
	c.OnSnapshot(kube.Change[*snapv1.VolumeSnapshot]{Old: first, New: second})
	if len(c.gone) > 0 || len(c.neglected.known) > 0 {
		t.Errorf("still remembered: %v %v", c.gone, c.neglected.known)
	}
}

// The claim of such a snapshot is free as well.
func TestClassBecomesForeignFreesTheClaim(t *testing.T) {
	h := kit.New(t)
	disk(h)
	release := h.API.Deny("create", "volumesnapshotcontents")
	both(h)
	userTakes("snap")(h)
	h.Horizon = 10 * time.Second
	h.Settle()
	kit.Edit(h.API, kube.Key{Name: kit.SnapshotClassName}, func(c *snapv1.VolumeSnapshotClass) { c.Driver = "other.example" })
	release()
	h.Horizon = 10 * time.Minute
	h.Settle()
	kit.Remove[*corev1.PersistentVolumeClaim](h.API, key("data"))
	userDeletes("snap")(h)
	h.Horizon = 2 * time.Hour
	h.Settle()
	wantNothing(t, h)
	if claim, ok := kit.Read[*corev1.PersistentVolumeClaim](h.API, key("data")); ok {
		t.Errorf("the claim stays: %v %v", claim.Finalizers, claim.DeletionTimestamp)
	}
}

// Somebody follows the advice of "was taken at" and has another one taken. Catches a snapshot that shows the old time for the new data.
func TestOldTimeOverNewData(t *testing.T) {
	h := kit.New(t)
	disk(h)
	both(h)
	userTakes("snap")(h)
	h.Settle()
	c := kit.All[*kube.Content](h.API)[0]
	kit.Edit(h.API, kube.KeyOf(c), func(o *kube.Content) { o.Finalizers = nil })
	kit.Remove[*kube.Content](h.API, kube.KeyOf(c))
	h.Horizon = time.Minute
	h.Settle()
	_ = h.Driver.DeleteSnapshot(h.Ctx, &csi.DeleteSnapshotRequest{SnapshotId: *c.Status.SnapshotHandle})
	h.Clock.Step(7 * 24 * time.Hour)
	again := c.DeepCopy()
	again.Status, again.UID, again.ResourceVersion, again.CreationTimestamp = nil, "anew", "", metav1.NewTime(h.Clock.Now())
	h.Put(again)
	h.Settle()
	kit.Edit(h.API, kube.KeyOf(c), func(o *kube.Content) {
		kube.SetAnnotation(o, "snapshot.storage.kubernetes.io/volumesnapshot-being-created", "yes")
	})
	h.Horizon = time.Hour
	h.Settle()
	s, now := snap(t, h, "snap"), kit.All[*kube.Content](h.API)[0]
	if !isReady(s) || s.Status.CreationTime.UnixNano() != *now.Status.CreationTime {
		t.Errorf("ready %v: the snapshot says %v, the content %v", isReady(s), s.Status.CreationTime, time.Unix(0, *now.Status.CreationTime).UTC())
	}
}
