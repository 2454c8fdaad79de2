// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

var everySnapshot = []string{"s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"}

func claimFinalizers(h *kit.Harness) []string {
	claim, _ := kit.Read[*corev1.PersistentVolumeClaim](h.API, key("data"))
	return claim.Finalizers
}

func TestClaimIsHeldAsLongAsOneNeedsIt(t *testing.T) {
	h := kit.New(t)
	disk(h)
	both(h)
	h.Horizon = 30 * time.Second
	h.Driver.Next("CreateSnapshot", kit.Reply{Code: codes.InvalidArgument, Text: "no", Times: 1})
	userTakes("s0")(h)
	h.Settle()
	h.Driver.Next("CreateSnapshot", kit.Reply{Code: codes.InvalidArgument, Text: "no", Times: 10000})
	for _, name := range everySnapshot[1:5] {
		userTakes(name)(h)
	}
	h.Settle()
	if f := claimFinalizers(h); len(f) != 1 || f[0] != wellknown.FinalizerSourceClaim {
		t.Fatalf("S37 claim finalizers %v", f)
	}
	for _, name := range everySnapshot[1:5] {
		userDeletes(name)(h)
	}
	h.Settle()
	wantReady("s0")(t, h)
}

func TestParallelDeletionFreesTheClaim(t *testing.T) {
	h := kit.New(t)
	disk(h)
	both(h)
	h.Lag(2)
	h.Driver.Next("CreateSnapshot", kit.Reply{Code: codes.InvalidArgument, Text: "no", Times: 10000})
	h.Horizon = 10 * time.Second
	for _, name := range everySnapshot {
		userTakes(name)(h)
	}
	h.Settle()
	h.API.Conflict("persistentvolumeclaims", 3)
	for _, name := range everySnapshot {
		userDeletes(name)(h)
	}
	kit.Remove[*corev1.PersistentVolumeClaim](h.API, key("data"))
	h.Settle()
	wantNothing(t, h)
	if _, there := kit.Read[*corev1.PersistentVolumeClaim](h.API, key("data")); there {
		t.Errorf("S38 S39 B017 the claim cannot go: %v", claimFinalizers(h))
	}
}

func TestTornOutSnapshotFreesTheClaim(t *testing.T) {
	h := kit.New(t)
	disk(h)
	both(h)
	h.Horizon = 5 * time.Second
	h.Driver.Next("CreateSnapshot", kit.Reply{Code: codes.InvalidArgument, Text: "no", Times: 10000})
	userTakes("snap")(h)
	h.Settle()
	kit.Edit(h.API, key("snap"), func(s *snapv1.VolumeSnapshot) { s.Finalizers = nil; kit.Deleted(s) })
	h.Settle()
	if f := claimFinalizers(h); len(f) > 0 {
		t.Errorf("a claim held for nobody: %v", f)
	}
}

func TestErrorsAreShownOnceAndHeal(t *testing.T) {
	h := kit.New(t)
	disk(h)
	both(h)
	h.Driver.Next("CreateSnapshot", kit.Reply{Code: codes.FailedPrecondition, Text: "quota reached", Times: 5})
	userTakes("snap")(h)
	h.Settle()
	wantReady("snap")(t, h)
	const text = `Failed to create snapshot: failed to take snapshot of the volume handle-of-pv-data: "rpc error: code = FailedPrecondition desc = quota reached"`
	wantEvents(t, h, "Warning SnapshotCreationFailed "+text, "Warning SnapshotCreationFailed "+text, "Normal SnapshotReady Snapshot default/snap is ready to use.")
	writes := 0
	for _, line := range brief(h) {
		if strings.HasSuffix(line, "/status") {
			writes++
		}
	}
	if writes != 4 {
		t.Errorf("S64 B063 error and success are a write each on both objects, got %d:\n%s", writes, strings.Join(effects(h), "\n"))
	}
}

func TestConflictsAreNeverShown(t *testing.T) {
	for _, resource := range []string{"volumesnapshots", "volumesnapshots/status", "volumesnapshotcontents", "volumesnapshotcontents/status", "persistentvolumeclaims"} {
		h := kit.New(t)
		disk(h)
		both(h)
		h.API.Conflict(resource, 3)
		userTakes("snap")(h)
		h.Settle()
		wantReady("snap")(t, h)
		for _, event := range h.Recorder.Events() {
			if strings.HasPrefix(event, "Warning") {
				t.Errorf("S26 B061 conflict on %s: %s", resource, event)
			}
		}
	}
}

func TestContentCannotBeCreated(t *testing.T) {
	h := kit.New(t)
	disk(h)
	both(h)
	h.API.Fail("create", "volumesnapshotcontents", apierrors.NewInternalError(errors.New("etcd")), 3)
	userTakes("snap")(h)
	h.Settle()
	wantReady("snap")(t, h)
	if n := h.Recorder.Count("Warning CreateSnapshotContentFailed Error creating volume snapshot content object for snapshot default/snap: " +
		"Internal error occurred: etcd."); n != 3 {
		t.Errorf("S25 told %d times: %v", n, h.Recorder.Events())
	}
}

func TestNameOfContentIsTaken(t *testing.T) {
	h := kit.New(t)
	disk(h)
	both(h)
	s := kit.Snapshot("snap", "data")
	theirs := kit.Content(s, kit.VolumeHandle("pv-data"), func(c *kube.Content) { c.Spec.VolumeSnapshotRef.UID = "other" })
	h.Horizon = 5 * time.Second
	h.Stores.Hold()
	h.Put(theirs)
	h.Put(s)
	h.Stores.Sync()
	h.Settle()
	got := snap(t, h, "snap")
	if got.Status == nil || got.Status.Error == nil || !strings.Contains(*got.Status.Error.Message, "is bound to a different snapshot") {
		t.Errorf("S23 %+v", got.Status)
	}
	userDeletes("snap")(h)
	h.Settle()
	if _, there := kit.Read[*kube.Content](h.API, kube.KeyOf(theirs)); !there {
		t.Error("S23 somebody else's content was deleted")
	}
}

func TestRestoreKeepsTheSnapshot(t *testing.T) {
	h := kit.New(t)
	disk(h)
	both(h)
	userTakes("snap")(h)
	h.Settle()
	elsewhere := kit.Claim("elsewhere", kit.FromSnapshot("snap"))
	elsewhere.Namespace = "other"
	h.Put(kit.Claim("restored", kit.FromSnapshot("snap")), elsewhere)
	h.Horizon = 5 * time.Second
	userDeletes("snap")(h)
	h.Settle()
	if c := kit.All[*kube.Content](h.API)[0]; c.DeletionTimestamp != nil || len(h.Driver.Calls("DeleteSnapshot")) > 0 {
		t.Fatal("S85 deleted under a restore")
	}
	if n := h.Recorder.Count("Normal SnapshotDeletePending Snapshot is being used to restore a PVC: default/restored"); n == 0 {
		t.Errorf("S85 nobody was told: %v", h.Recorder.Events())
	}
	kit.Edit(h.API, key("restored"), func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimBound })
	h.Settle()
	wantNothing(t, h)
}

func TestDefaultClassHealsByItself(t *testing.T) {
	h := kit.New(t)
	disk(h)
	_, room := binder(h, Own)
	h.Add(room, taker(h))
	h.Horizon = 3 * time.Second
	mark := func(c *snapv1.VolumeSnapshotClass) {
		kube.SetAnnotation(c, wellknown.AnnIsDefaultSnapshotClass, "true")
	}
	h.Put(kit.SnapshotClass("a", mark), kit.SnapshotClass("b", mark))
	userTakes("snap", func(s *snapv1.VolumeSnapshot) { s.Spec.VolumeSnapshotClassName = nil })(h)
	h.Settle()
	if s := snap(t, h, "snap"); s.Status == nil || !strings.Contains(*s.Status.Error.Message, "2 default snapshot classes were found: a, b") || len(s.Finalizers) > 0 {
		t.Errorf("S11 B075 %+v", s.Status)
	}
	kit.Edit(h.API, kube.Key{Name: "a"}, func(c *snapv1.VolumeSnapshotClass) { c.Annotations = nil })
	h.Settle()
	wantReady("snap")(t, h)
	if s := snap(t, h, "snap"); *s.Spec.VolumeSnapshotClassName != "b" {
		t.Errorf("S9 class %s", *s.Spec.VolumeSnapshotClassName)
	}
}

func TestMissingPiecesAreNoticedAtOnce(t *testing.T) {
	h := kit.New(t)
	disk(h)
	both(h)
	kit.Edit(h.API, key("data"), func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending })
	h.Horizon = 1500 * time.Millisecond
	userTakes("snap")(h)
	h.Settle()
	if s := snap(t, h, "snap"); s.Status == nil || !strings.Contains(*s.Status.Error.Message, "is not yet bound") {
		t.Fatalf("S15 %+v", s.Status)
	}
	at := h.Clock.Now()
	kit.Edit(h.API, key("data"), func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimBound })
	h.Settle()
	wantReady("snap")(t, h)
	if s := snap(t, h, "snap"); s.Status.CreationTime.After(at.Add(time.Second)) {
		t.Error("S15 taken by the next try only")
	}
}

func TestForeignersAreNeverWritten(t *testing.T) {
	h := kit.New(t)
	disk(h)
	both(h)
	h.Put(kit.SnapshotClass("theirs", func(c *snapv1.VolumeSnapshotClass) { c.Driver = "other.example" }))
	userTakes("theirs", func(s *snapv1.VolumeSnapshot) { s.Spec.VolumeSnapshotClassName = kit.Ptr("theirs") })(h)
	userTakes("nobodys", func(s *snapv1.VolumeSnapshot) { s.Spec.VolumeSnapshotClassName = kit.Ptr("missing") })(h)
	userTakes("member", func(s *snapv1.VolumeSnapshot) {
		s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "groupsnapshot.storage.k8s.io/v1", Kind: "VolumeGroupSnapshot", Name: "g", UID: "g"}}
	})(h)
	h.Settle()
	if got := effects(h); len(got) > 0 {
		t.Errorf("S101 written: %v", got)
	}
	wantEvents(t, h, `Warning GetSnapshotClassFailed Failed to get snapshot class with error volumesnapshotclass.snapshot.storage.k8s.io "missing" not found; create VolumeSnapshotClass missing, or name another one in a new VolumeSnapshot`,
		"Warning SnapshotDriverMissing No snapshotter of driver other.example, which VolumeSnapshotClass theirs names, has touched this VolumeSnapshot for two minutes: it is not installed, not running, "+
			"may not bind (its log and /readyz name the right), or the name of the driver is wrong; see that the pods of driver other.example have a snapshotter beside the driver; if another driver is meant, correct the driver of VolumeSnapshotClass theirs, and the snapshot goes on by itself")
	h.Put(kit.SnapshotClass("missing"))
	h.Settle()
	if !isReady(snap(t, h, "nobodys")) {
		t.Error("S8 the class came, and nothing happened")
	}
}

func TestBindingForSidecarsOfOthers(t *testing.T) {
	h := kit.New(t)
	disk(h)
	_, room := binder(h, All)
	h.Add(room)
	userTakes("snap")(h)
	h.Settle()
	contents := kit.All[*kube.Content](h.API)
	if len(contents) != 1 || contents[0].Annotations[wellknown.AnnBeingCreated] != "" {
		t.Fatalf("all: the content of another's sidecar is not marked by us: %+v", contents)
	}
	kit.Edit(h.API, kube.KeyOf(contents[0]), kit.Taken("handle-1"))
	h.Settle()
	wantReady("snap")(t, h)
	h.Log.Clear()
	userDeletes("snap")(h)
	h.Settle()
	got := fmt.Sprint(brief(h))
	if want := "[patch volumesnapshotcontents delete volumesnapshotcontents]"; got != want {
		t.Errorf("S68 order: mark, then deletion; got %s, want %s", got, want)
	}
	kit.Edit(h.API, kube.KeyOf(contents[0]), func(c *kube.Content) { c.Finalizers = nil })
	h.Settle()
	wantNothing(t, h)
}

// TestClaimWithoutVolumeIsFree (I9): a claim that never got a volume holds nothing that a snapshot could need.
func TestClaimWithoutVolumeIsFree(t *testing.T) {
	for _, held := range []bool{false, true} {
		h := kit.New(t)
		disk(h)
		h.Put(kit.Claim("empty", func(c *corev1.PersistentVolumeClaim) {
			if held {
				c.Finalizers = []string{wellknown.FinalizerSourceClaim}
			}
		}))
		both(h)
		h.Horizon = time.Second
		h.Put(kit.Snapshot("early", "empty"))
		h.Settle()
		kit.Remove[*corev1.PersistentVolumeClaim](h.API, key("empty"))
		h.Settle()
		if claim, there := kit.Read[*corev1.PersistentVolumeClaim](h.API, key("empty")); there {
			t.Errorf("held before: %v, the claim cannot go: %v\n%s", held, claim.Finalizers, h.Trace())
		}
	}
}
