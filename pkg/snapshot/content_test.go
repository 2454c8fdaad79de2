// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

type contentRow struct {
	name string
	in   ContentInput
	want ContentStep
}

func checkContents(t *testing.T, rows []contentRow) {
	t.Helper()
	for _, c := range rows {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, NextContentStep(c.in), anyWhy); diff != "" {
				t.Errorf("unexpected step (-want +got):\n%s", diff)
			}
		})
	}
}

func secretNamed(name, namespace string) func(*ContentInput) {
	return func(i *ContentInput) {
		i.Content.Annotations[wellknown.AnnSnapshotDeletionSecretName] = name
		i.Content.Annotations[wellknown.AnnSnapshotDeletionSecretNamespace] = namespace
	}
}

func failing(status *snapv1.VolumeSnapshotContentStatus, reason, text, cause string) Record {
	message, _ := split(text)
	failure, advice := split(cause)
	at := metav1.NewTime(now)
	status.Error, status.ReadyToUse = &snapv1.VolumeSnapshotError{Time: &at, Message: &message}, ptr(false)
	return Record{Status: status, Told: &Told{true, reason, message}, Failure: failure, Advice: advice}
}

func TestSnapshotIsTaken(t *testing.T) {
	meta := request()
	meta.Parameters["csi.storage.k8s.io/volumesnapshot/name"] = "snap"
	meta.Parameters["csi.storage.k8s.io/volumesnapshot/namespace"] = "ns1"
	meta.Parameters["csi.storage.k8s.io/volumesnapshotcontent/name"] = "snapcontent-u1"
	short := request()
	short.Name = "s-u1"
	old := request()
	old.Name = "old-u1"
	named := func(name string) func(*ContentInput) {
		return func(i *ContentInput) { i.Content.Annotations[wellknown.AnnSnapshotName] = name }
	}
	before := func(i *ContentInput) { i.Taken = ptr(past) }
	unseen := func(i *ContentInput) { i.Snapshot = Unknown }
	refused := func(i *ContentInput) { i.Attempt.Refused = true }
	takenBefore := `VolumeSnapshot ns1/snap was taken at 2026-08-01T11:00:00Z, and VolumeSnapshotContent snapcontent-u1 does not say any more what the driver calls it | ` +
		`if the driver still has it, as "snapshot-u1", snapshotter import brings it back under another name; or kubectl annotate vsc snapcontent-u1 ` +
		`snapshot.storage.kubernetes.io/volumesnapshot-being-created=yes has the driver asked by that name, which takes a new one if it is gone`
	lost := failing(&snapv1.VolumeSnapshotContentStatus{}, wellknown.ReasonSnapshotCreationFailed, "Failed to create snapshot: "+takenBefore, takenBefore)
	noClass := failing(&snapv1.VolumeSnapshotContentStatus{}, wellknown.ReasonSnapshotCreationFailed,
		`Failed to create snapshot: failed to get input parameters to create snapshot for content snapcontent-u1: `+
			`"volumesnapshotclass.snapshot.storage.k8s.io \"snapc\" not found" | create VolumeSnapshotClass snapc again; it is looked at again by itself`,
		`failed to get input parameters to create snapshot for content snapcontent-u1: "volumesnapshotclass.snapshot.storage.k8s.io \"snapc\" not found" | create VolumeSnapshotClass snapc again; it is looked at again by itself`)
	badKey := `failed to get input parameters to create snapshot for content snapcontent-u1: "failed to remove CSI Parameters of prefixed keys: ` +
		`found unknown parameter key \"csi.storage.k8s.io/typo\" with reserved namespace csi.storage.k8s.io/" | look at the parameters of VolumeSnapshotClass snapc; it is looked at again by itself`
	invalid := tell(wellknown.ReasonContentValidationError, "Exactly one of VolumeHandle and SnapshotHandle should be specified | make the content anew, with exactly one of spec.source.volumeHandle and spec.source.snapshotHandle")
	checkContents(t, []contentRow{
		{"S1 as our binder made it", con(), Create{Request: request()}},
		{"S55 I1 made by another binder: the mark first, and the parameters on record", con(unmarked, unrecorded),
			Create{Request: request(), Mark: true, Parameters: `{"tier":"gold"}`}},
		{"the record goes before the class", con(func(i *ContentInput) { i.Class = class("snapc", driverName) }), Create{Request: request()}},
		{"S4 secret", con(secretNamed("s", "n")), Create{Request: request(), Secret: &corev1.SecretReference{Name: "s", Namespace: "n"}}},
		{"S54 extra metadata", con(func(i *ContentInput) { i.Options.ExtraMetadata = true }), Create{Request: meta}},
		{"S52 prefix and length", con(func(i *ContentInput) { i.Options.NamePrefix, i.Options.NameLength = "s", 8 }), Create{Request: short}},
		{"S52 the name on record goes before the flags", con(named("old-u1")), Create{Request: old}},
		{"S52 also where it is only asked for", con(cut, named("old-u1")), Poll{Handle: "s-1", Again: &Create{Request: old}}},
		{"S52 but not one of another snapshot", con(named("old-u2")), Create{Request: request(), Mark: true}},
		{"S52 nor one that was refused for certain", con(named("old-u1"), refused, tried(Settled)), Create{Request: request(), Mark: true}},
		{"S52 unless there is something under it all the same", con(named("old-u1"), refused, tried(Settled), before), Create{Request: old}},
		{"S52 or may be", con(named("old-u1"), refused, tried(Open)), Create{Request: old}},
		{"taken long ago, and the handle is lost: a live look", con(unmarked, before), Confirm{}},
		{"and nothing is taken in its place", con(unmarked, before, live), lost},
		{"where snapshots are not watched, a live look at all that another binder made", con(unmarked, unseen), Confirm{}},
		{"and where they may not be read, it is taken", con(unmarked, unseen, live), Create{Request: request(), Mark: true}},
		{"our binder's is marked from the start", con(unseen), Create{Request: request()}},
		{"told once", con(unmarked, before, live, func(i *ContentInput) { i.Content.Status = lost.Status }), Record{Failure: lost.Failure, Advice: lost.Advice}},
		{"with the mark somebody may have asked", con(before), Create{Request: request()}},
		{"and so without, when it was this process", con(unmarked, before, tried(Open)), Create{Request: request(), Mark: true}},
		{"S57 backoff", con(waiting, tried(Open)), Wait{After: 4 * time.Second}},
		{"9.4 a mark that was wiped while a create is open comes back", con(waiting, unmarked, tried(Open)), Mark{}},
		{"S65 W3 no class: no mark, no call", con(unmarked, unrecorded, func(i *ContentInput) { i.Class = nil }), noClass},
		{"S53 W3 bad class: no mark, no call", con(unmarked, unrecorded, func(i *ContentInput) { i.Class.Parameters = map[string]string{"csi.storage.k8s.io/typo": ""} }),
			failing(&snapv1.VolumeSnapshotContentStatus{}, wellknown.ReasonSnapshotCreationFailed, "Failed to create snapshot: "+badKey, badKey)},
		{"S64 the same error again writes nothing", con(unmarked, unrecorded, func(i *ContentInput) { i.Class, i.Content.Status = nil, noClass.Status }),
			Record{Failure: noClass.Failure, Advice: noClass.Advice}},
		{"S51 another driver", con(func(i *ContentInput) { i.Content.Spec.Driver = "other" }), Ignore{}},
		{"S36 no source", con(func(i *ContentInput) { i.Content.Spec.Source = snapv1.VolumeSnapshotContentSource{} }), invalid},
		{"S36 two sources", con(func(i *ContentInput) { i.Content.Spec.Source.SnapshotHandle = ptr("x") }), invalid},
		{"no UID, no name at the driver", con(neverUID), Ignore{}},
		{"member of a group", con(func(i *ContentInput) { i.GroupHandle = "g" }), Ignore{}},
	})
}

func TestSnapshotIsPolledUntilReady(t *testing.T) {
	again := &Create{Request: request()}
	listClass := func(i *ContentInput) {
		i.Content.Spec.VolumeSnapshotClassName, i.Class = ptr("snapc"), class("snapc", driverName)
		i.Class.Parameters = map[string]string{wellknown.ParamSnapshotterListSecretName: "l", wellknown.ParamSnapshotterListSecretNamespace: "n"}
	}
	listSecret := &corev1.SecretReference{Name: "l", Namespace: "n"}
	classGone := `failed to get snapshot class snapc for snapshot content snapcontent-u1: volumesnapshotclass.snapshot.storage.k8s.io "snapc" not found | create VolumeSnapshotClass snapc again; it is looked at again by itself`
	checkContents(t, []contentRow{
		{"S58 the handle is known: the mark goes", con(cut, func(i *ContentInput) { i.Content.Annotations[wellknown.AnnBeingCreated] = "yes" }), DropMark{}},
		{"S59 by creating again, without a mark", con(cut), Poll{Handle: "s-1", Again: again}},
		{"GetSnapshot when there is one", con(cut, listClass, can(get, list)), Poll{Handle: "s-1", Get: true, List: true, Secret: listSecret, Again: again}},
		{"ListSnapshots else", con(cut, listClass, can(list)), Poll{Handle: "s-1", List: true, Secret: listSecret, Again: again}},
		{"9.4.5 without class the create is left", con(cut, can(get, list)), Poll{Handle: "s-1", Again: again}},
		{"W-perf-5 not before its time", con(cut, waiting), Wait{After: 4 * time.Second}},
		{"S68 leftover mark of a ready content", con(finished, func(i *ContentInput) { i.Content.Annotations[wellknown.AnnBeingCreated] = "yes" }), DropMark{}},
		{"S32 I6 settled", con(finished), Ignore{}},
		{"an error beside ready is nobody's any more", con(finished, func(i *ContentInput) {
			i.Content.Status.Error = &snapv1.VolumeSnapshotError{Message: ptr("an operation is pending")}
		}), Record{Status: con(finished).Content.Status}},
		{"S43 imported", con(byHand, neverUID, can(list)), Poll{Handle: "s-1", List: true}},
		{"S48 imported with list secret", con(byHand, listClass, can(list)), Poll{Handle: "s-1", List: true, Secret: listSecret}},
		{"imported, class missing", con(byHand, can(list), func(i *ContentInput) { i.Content.Spec.VolumeSnapshotClassName = ptr("snapc") }),
			failing(&snapv1.VolumeSnapshotContentStatus{}, wellknown.ReasonSnapshotCreationFailed, "Failed to create snapshot: "+classGone, classGone)},
		{"S46 nobody can ask", con(byHand), Record{Status: &snapv1.VolumeSnapshotContentStatus{
			SnapshotHandle: ptr("s-1"), ReadyToUse: ptr(true), CreationTime: ptr(now.UnixNano())}}},
		{"imported and ready", con(finished, byHand), Ignore{}},
	})
}

func TestContentThatIsLeaving(t *testing.T) {
	secret := &corev1.SecretReference{Name: "s", Namespace: "n"}
	foreign := func(i *ContentInput) { i.Content.Finalizers = append(i.Content.Finalizers, "x/y") }
	done := func(i *ContentInput) { i.Attempt.Deleted = true }
	shared := func(i *ContentInput) { i.SharedWith = "c2" }
	told := &Told{true, wellknown.ReasonSnapshotHandleShared, `Let go without deleting snapshot "s-1" at the driver, because VolumeSnapshotContent c2 has it too`}
	half, both := split(`Failed to get snapshot credentials: cannot retrieve secrets for snapshot content "snapcontent-u1", err: secret name or namespace not specified | ` +
		"annotations snapshot.storage.kubernetes.io/deletion-secret-name and snapshot.storage.kubernetes.io/deletion-secret-namespace of VolumeSnapshotContent snapcontent-u1 have to be there both, or none")
	checkContents(t, []contentRow{
		{"S68 first a live look", con(finished, terminating), Confirm{}},
		{"S68 then the driver", con(finished, terminating, live), Delete{Handle: "s-1"}},
		{"S68 with its secret", con(finished, terminating, live, secretNamed("s", "n")), Delete{Handle: "s-1", Secret: secret}},
		{"S68 then it goes", con(finished, terminating, live, done), ReleaseContent{}},
		{"S74 held by others: no second deletion", con(finished, terminating, live, done, foreign), ClearStatus{}},
		{"S74 the mark before the handle", con(finished, terminating, live, done, foreign, func(i *ContentInput) {
			i.Content.Annotations[wellknown.AnnBeingCreated] = "yes"
		}), DropMark{}},
		{"S74 what was deleted is not made again", con(terminating, live, done, tried(Open)), ReleaseContent{}},
		{"S74 cleared", con(terminating, unmarked, foreign), ReleaseContent{}},
		{"S74 nothing left of ours", con(terminating, unmarked, func(i *ContentInput) { i.Content.Finalizers = []string{"x/y"} }), Ignore{}},
		{"S72 backoff", con(finished, terminating, live, waiting), Wait{After: 4 * time.Second}},
		{"S69 Retain", con(finished, terminating, retain), ReleaseContent{}},
		{"S71 switched to Delete", con(finished, terminating, seen(Gone), live, doomed), Delete{Handle: "s-1"}},
		{"another content has the snapshot", con(finished, terminating, live, shared), ReleaseContent{told}},
		{"and others hold this one: the handle goes", con(finished, terminating, live, shared, foreign), ClearStatus{told}},
		{"another content has what is kept", con(finished, terminating, live, shared, retain), ReleaseContent{}},
		{"S91 member of a group", con(finished, terminating, func(i *ContentInput) { i.GroupHandle = "g" }), ReleaseContent{}},
		{"W9 S88 a secret that stays missing", con(finished, terminating, live, secretNamed("s", "n"), func(i *ContentInput) {
			i.Attempt.SecretMissing = now.Add(-2 * time.Minute)
		}), Delete{Handle: "s-1", Secret: secret, WithoutSecret: true}},
		{"half a secret", con(finished, terminating, live, secretNamed("s", "")), Record{
			Status: func() *snapv1.VolumeSnapshotContentStatus {
				s := con(finished).Content.Status
				s.Error = &snapv1.VolumeSnapshotError{Time: ptr(metav1.NewTime(now)), Message: &half}
				return s
			}(),
			Told: &Told{true, wellknown.ReasonSnapshotDeleteError, half}, Failure: half, Advice: both}},
	})
}

// A class was deleted, and another driver's took its name. Catches a machine that says nothing about what it cannot begin, and one that says
// of a class which is there that it is missing.
func TestNameOfTheClassIsUsedAgain(t *testing.T) {
	reused := func(i *ContentInput) {
		i.Content.Spec.VolumeSnapshotClassName, i.Class = ptr("snapc"), class("snapc", "other")
		i.Class.Parameters = map[string]string{"theirs": "1"}
	}
	given := func(i *ContentInput) { i.Attempt.LeavingSince = now.Add(-2 * time.Minute) }
	nameOnly := request()
	nameOnly.Parameters = map[string]string{}
	of := `VolumeSnapshotClass snapc is of driver "other", but VolumeSnapshotContent snapcontent-u1 is of driver "` + driverName + `"`
	helps := " | correct the driver of that class, or name one of driver " + driverName + " in spec.volumeSnapshotClassName of the content; it is looked at again by itself"
	theirs := "failed to get snapshot class snapc for snapshot content snapcontent-u1: " + of + helps
	not := failing(&snapv1.VolumeSnapshotContentStatus{}, wellknown.ReasonSnapshotCreationFailed, "Failed to create snapshot: "+theirs, theirs)
	guess := "failed to get input parameters to create snapshot for content snapcontent-u1: " + fmt.Sprintf("%q", of) + helps
	checkContents(t, []contentRow{
		{"the deletion goes on", con(finished, terminating, live, reused), Delete{Handle: "s-1"}},
		{"an open create is settled, as it is on record", con(terminating, reused), Create{Request: request()}},
		{"without a record never with what is theirs", con(terminating, unrecorded, given, reused), Create{Request: nameOnly}},
		{"what is taken is polled", con(cut, reused), Poll{Handle: "s-1", Again: &Create{Request: request()}}},
		{"what was imported and is gone from us", con(finished, byHand, terminating, live, reused), Delete{Handle: "s-1"}},
		{"without a record, and before its time, the class is not called missing", con(terminating, unrecorded, reused),
			failing(&snapv1.VolumeSnapshotContentStatus{}, wellknown.ReasonSnapshotCreationFailed, "Failed to create snapshot: "+guess, guess)},
		{"S51 nothing is begun, and both drivers are named", con(reused), not},
		{"S51 nor looked for", con(byHand, reused, can(list)), not},
		{"S51 told once", con(reused, func(i *ContentInput) { i.Content.Status = not.Status }), Record{Failure: not.Failure, Advice: not.Advice}},
		{"S51 what is ready stays so", con(finished, byHand, reused), Ignore{}},
		{"S51 what nobody has bound is nobody's yet", con(reused, neverUID), Ignore{}},
		{"S51 a member of a group goes with its group", con(reused, func(i *ContentInput) { i.GroupHandle = "g" }), Ignore{}},
	})
}

// Catches also the incumbent's rule, by which a snapshot that was brought in stays at the driver, whatever the policy, when its
// content goes before the driver was heard of it.
func TestPermissionToLeave(t *testing.T) {
	refused := func(i *ContentInput) {
		i.Content.Status = &snapv1.VolumeSnapshotContentStatus{ReadyToUse: ptr(false), Error: &snapv1.VolumeSnapshotError{Message: ptr("no")}}
	}
	cleared := func(i *ContentInput) { i.Content.Status = &snapv1.VolumeSnapshotContentStatus{} }
	checkContents(t, []contentRow{
		{"S76 I3 the snapshot lives", con(finished, terminating, seen(Alive)), Ignore{}},
		{"W18 a mark against a living snapshot is looked into", con(finished, terminating, seen(Alive), doomed), Confirm{}},
		{"W18 and does not count", con(finished, terminating, seen(Alive), doomed, live), Ignore{}},
		{"W7 S83 the snapshot is gone, says the cache", con(finished, terminating, seen(Gone)), Confirm{}},
		{"W7 S83 the snapshot is gone", con(finished, terminating, seen(Gone), live), Delete{Handle: "s-1"}},
		{"S100 snapshots cannot be read: ask once", con(finished, terminating, seen(Unknown)), Confirm{}},
		{"S100 no mark: as if living", con(finished, terminating, seen(Unknown), live), Ignore{}},
		{"S100 mark", con(finished, terminating, seen(Unknown), live, doomed), Delete{Handle: "s-1"}},
		{"B011 never bound", con(finished, byHand, terminating, neverUID, seen(Unknown), live), Delete{Handle: "s-1"}},
		{"imported, and the driver was never heard of it", con(byHand, terminating, live), Delete{Handle: "s-1"}},
		{"imported, and the driver has always failed", con(byHand, terminating, live, refused), Delete{Handle: "s-1"}},
		{"imported, deleted, and held by others", con(byHand, terminating, live, cleared), ReleaseContent{}},
		{"B011 never bound, but a snapshot names it", con(finished, byHand, terminating, neverUID, seen(Alive), live), Ignore{}},
		{"S76 a content of a living snapshot is still taken", con(terminating, seen(Alive)), Create{Request: request()}},
	})
}

func TestOpenOutcomeIsSettledFirst(t *testing.T) {
	fresh := func(i *ContentInput) { i.Attempt.Fresh = true }
	unsure := func(n int) func(*ContentInput) {
		return func(i *ContentInput) { i.Attempt.Unsure, i.Attempt.UnsureFor = n, 5*time.Minute }
	}
	checkContents(t, []contentRow{
		{"S79 I2 marked by somebody: create again", con(terminating), Create{Request: request()}},
		{"S80 also when all permit the deletion", con(terminating, doomed, live), Create{Request: request()}},
		{"S84 the mark was wiped, we remember", con(terminating, unmarked, tried(Open), live), Create{Request: request(), Mark: true}},
		{"S81 the driver has said no", con(terminating, tried(Settled), live), ReleaseContent{}},
		{"never sent, and nobody was before us", con(terminating, fresh, live), ReleaseContent{}},
		{"I2 fresh, but sent by us", con(terminating, fresh, tried(Open), live), Create{Request: request()}},
		{"W1 ready with a leftover mark goes on", con(terminating, finished, live, func(i *ContentInput) {
			i.Content.Annotations[wellknown.AnnBeingCreated] = "yes"
		}), Delete{Handle: "s-1"}},
		{"two unsure answers are not enough", con(terminating, tried(Open), unsure(2)), Create{Request: request()}},
		{"three within a short time are not", con(terminating, tried(Open), unsure(3), func(i *ContentInput) {
			i.Attempt.UnsureFor = 4 * time.Minute
		}), Create{Request: request()}},
		{"three over a long one are", con(terminating, tried(Open), unsure(3)), ReleaseContent{&Told{true, wellknown.ReasonSnapshotOutcomeUnknown,
			`The driver could not say whether it has made a snapshot; look there for one named "snapshot-u1" of volume "vol-1"`}}},
		{"three for a living snapshot mean nothing", con(tried(Open), unsure(3)), Create{Request: request()}},
	})
}

func TestStateOf(t *testing.T) {
	c, unbound := con().Content, con(neverUID).Content
	for _, r := range []struct {
		name     string
		content  *snapv1.VolumeSnapshotContent
		snapshot *snapv1.VolumeSnapshot
		want     SnapshotState
	}{
		{"lives", c, in().Snapshot, Alive},
		{"is being deleted", c, in(deleted).Snapshot, Deleting},
		{"is being deleted, and a restore reads it", c, in(deleted, func(i *SnapshotInput) {
			i.Snapshot.Finalizers = []string{wellknown.FinalizerSnapshotAsSource}
		}).Snapshot, Alive},
		{"is gone", c, nil, Gone},
		{"a namesake", c, in(func(i *SnapshotInput) { i.Snapshot.UID = "u2" }).Snapshot, Gone},
		{"unbound, a namesake that does not name it", unbound, in(func(i *SnapshotInput) { i.Snapshot.UID = "u2" }).Snapshot, Gone},
		{"the reference was cleared, but it was made for this one", unbound, in().Snapshot, Alive},
		{"another uid, and the snapshot is bound to it", c, in(ready, func(i *SnapshotInput) { i.Snapshot.UID = "u2" }).Snapshot, Alive},
		{"another uid, was bound, and is being deleted", c, in(ready, deleted, func(i *SnapshotInput) { i.Snapshot.UID = "u2" }).Snapshot, Gone},
		{"unbound, named", unbound, in(func(i *SnapshotInput) { i.Snapshot.Spec.Source.VolumeSnapshotContentName = ptr("snapcontent-u1") }).Snapshot, Alive},
	} {
		if got := StateOf(r.content, r.snapshot); got != r.want {
			t.Errorf("%s: %v, want %v", r.name, got, r.want)
		}
	}
}
