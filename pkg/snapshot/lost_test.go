// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"testing"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// TestReplacementGoesFirst: nobody but the process that got it knows of what was taken in place of a lost snapshot. Catches a machine that
// lets the content go before, or asks by the name again.
func TestReplacementGoesFirst(t *testing.T) {
	replaced := func(i *ContentInput) { i.Attempt.Replacement, i.Attempt.Lost = "s-2", true }
	leaves := func(i *ContentInput) {
		i.Content.DeletionTimestamp, i.Snapshot, i.Live = &metav1.Time{Time: now}, Deleting, true
	}
	checkContents(t, []contentRow{
		{"at once", con(cut, replaced, can(list)), Remove{Handle: "s-2"}},
		{"before the content's own", con(cut, replaced, leaves, can(list)), Remove{Handle: "s-2"}},
		{"with the secret of a deletion", con(cut, replaced, secretNamed("s", "n")), Remove{Handle: "s-2", Secret: &corev1.SecretReference{Name: "s", Namespace: "n"}}},
		{"after a failure when it is due", con(cut, replaced, waiting), Wait{After: 4 * time.Second}},
		{"then the list alone is asked", con(cut, can(list), func(i *ContentInput) {
			i.Content.Spec.VolumeSnapshotClassName, i.Class, i.Attempt.Lost = ptr("snapc"), class("snapc", driverName), true
		}), Poll{Handle: "s-1", List: true}},
	})
}

// TestReplacement: only what is certainly another snapshot is one. Catches a machine that has a snapshot removed because its id is
// written in another way.
func TestReplacement(t *testing.T) {
	taken := now.Add(-time.Hour).UnixNano()
	at := func(i *ContentInput) { i.Unlisted, i.Content.Status.CreationTime = true, &taken }
	later := Answer{Handle: "s-2", Taken: now, Source: *con().Content.Spec.Source.VolumeHandle}
	for name, c := range map[string]struct {
		edits  []func(*ContentInput)
		answer func(*Answer)
		want   string
	}{
		"taken later":              {nil, func(*Answer) {}, "s-2"},
		"listed, or not asked for": {[]func(*ContentInput){func(i *ContentInput) { i.Unlisted = false }}, func(*Answer) {}, ""},
		"taken then":               {nil, func(a *Answer) { a.Taken = time.Unix(0, taken) }, ""},
		"when is not said":         {nil, func(a *Answer) { a.Taken = time.Time{} }, ""},
		"taken a little later":     {nil, func(a *Answer) { a.Taken = time.Unix(0, taken).Add(certainlyLater) }, ""},
		"when is the time of each answer": {[]func(*ContentInput){func(i *ContentInput) {
			i.Attempt.Suspect = Answer{Handle: "s-2", Taken: now.Add(-time.Second)}
		}}, func(*Answer) {}, ""},
		"under an id of each answer": {[]func(*ContentInput){func(i *ContentInput) {
			i.Attempt.Suspect = Answer{Handle: "s-3", Taken: now}
		}}, func(*Answer) {}, ""},
		"the time on record is ours": {[]func(*ContentInput){func(i *ContentInput) { i.Attempt.Undated = true }}, func(*Answer) {}, ""},
		"of another volume":          {nil, func(a *Answer) { a.Source = "other" }, ""},
		"when the first is unknown":  {[]func(*ContentInput){func(i *ContentInput) { i.Content.Status.CreationTime = nil }}, func(*Answer) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			answer := later
			c.answer(&answer)
			in := con(append([]func(*ContentInput){cut, at}, c.edits...)...)
			if in.Attempt.Suspect.Handle == "" {
				in.Attempt.Suspect = answer
			}
			after := AfterCreate(in, answer, nil)
			if after.Attempt.Replacement != c.want || after.Attempt.Lost != (c.want != "") || after.Told == nil || after.Told.Reason != wellknown.ReasonSnapshotCheckFailed {
				t.Errorf("%+v", after)
			}
		})
	}
}

// TestQuestionBeforeTheEnd: only where something may be in the place of a lost snapshot is the driver asked before the deletion. Catches a machine that
// leaves it, and one that asks drivers for what cannot be.
func TestQuestionBeforeTheEnd(t *testing.T) {
	leaves := func(i *ContentInput) {
		i.Content.DeletionTimestamp, i.Snapshot, i.Live = &metav1.Time{Time: now}, Deleting, true
		i.Content.Spec.VolumeSnapshotClassName, i.Class = ptr("snapc"), class("snapc", driverName)
	}
	answered := func(i *ContentInput) { i.Attempt.Checked, i.Attempt.Replacement = true, "s-2" }
	asks := func(in ContentInput) Poll { return nextPoll(in, "s-1").(Poll) }
	given := func(i *ContentInput) { i.Attempt.Given = true }
	byName := func(i *ContentInput) { i.Attempt = i.Attempt.Asking() }
	first := asks(con(cut, leaves, can(get, list)))
	first.EvenLost = true
	checkContents(t, []contentRow{
		{"a list only", con(cut, leaves, can(list)), asks(con(cut, leaves, can(list)))},
		{"listed", con(cut, leaves, can(list), func(i *ContentInput) { i.Attempt.Listed = true }), Delete{Handle: "s-1"}},
		{"asked", con(cut, leaves, can(list), func(i *ContentInput) { i.Attempt.Checked = true }), Delete{Handle: "s-1"}},
		{"it is lost and not asked for any more", con(cut, leaves, can(list), func(i *ContentInput) { i.Attempt.Lost = true }), Delete{Handle: "s-1"}},
		{"no list either", con(cut, leaves), asks(con(cut, leaves))},
		{"it can be asked by its handle, and by its name nobody has", con(cut, leaves, can(get, list), given), Delete{Handle: "s-1"}},
		{"this process has", con(cut, leaves, can(get, list), given, byName), first},
		{"another may have", con(cut, leaves, can(get, list)), first},
		{"seen under its handle since", con(cut, leaves, can(get, list), func(i *ContentInput) { i.Attempt.Seen = true }), Delete{Handle: "s-1"}},
		{"listed, answered and seen before that", con(cut, leaves, can(get, list), func(i *ContentInput) {
			i.Attempt.Listed, i.Attempt.Seen, i.Attempt.Checked = true, true, true
		}, byName), first},
		{"ready", con(finished, leaves, can(list)), Delete{Handle: "s-1"}},
		{"what was answered then goes first", con(cut, leaves, can(list), answered), Remove{Handle: "s-2"}},
		{"it stays with a snapshot that lives", con(cut, leaves, can(list), answered, func(i *ContentInput) { i.Snapshot = Alive }), asks(con(cut, leaves, can(list)))},
		{"nothing goes on an old word", con(cut, leaves, can(list), answered, func(i *ContentInput) { i.Live = false }), Confirm{}},
		{"nor of what is retained", con(cut, leaves, can(list), answered, func(i *ContentInput) {
			i.Content.Spec.DeletionPolicy = snapv1.VolumeSnapshotContentRetain
		}), ReleaseContent{}},
	})
}

// TestRemovalOfWhatIsNotThere: a driver says that it does not know what is to be removed. Catches a machine that asks for ever, and holds the content.
func TestRemovalOfWhatIsNotThere(t *testing.T) {
	in := con(cut, can(list), func(i *ContentInput) { i.Attempt.Replacement, i.Attempt.Lost = "s-2", true })
	if after := AfterRemove(in, fault.New(fault.DeleteSnapshot, status.Error(codes.NotFound, "no"))); after.Attempt.Replacement != "" || after.Told != nil {
		t.Errorf("%+v", after)
	}
	if after := AfterRemove(in, fault.New(fault.DeleteSnapshot, status.Error(codes.Internal, "no"))); after.Attempt.Replacement != "s-2" || after.Told == nil {
		t.Errorf("%+v", after)
	}
}
