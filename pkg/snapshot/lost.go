// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// A driver without GetSnapshot may lose a snapshot before it is ready. Asked for it by its name it takes another,
// of another time and under another id, of which no object would know.
//
// What the list has shown once and shows no more is lost, and nothing is asked for by its name. What it never showed
// may be there all the same, since lists exist that lack what is not ready; then the name is asked for, and another
// answer than the one on record is removed again if it is certainly another snapshot: the list has nothing under
// the id on record, not even under another id, and what was answered, twice alike, is of the same volume and was taken
// at least a minute later.
// Anything less may be the snapshot itself, from a driver that has begun to write its ids in another way.
//
// An answer may be lost, and so may the process that heard it. So a content that goes before it was ready asks once more, and what is
// answered to its name then goes with it, under whatever id: it was taken for nobody else, or by this very question.
//
// A driver with GetSnapshot is asked by the name as well, when that call fails, and it may have been without it when an earlier process
// asked. So its contents ask by the handle before they go, unless this process knows that nobody can have asked by the name; and by the
// name only if the handle is not known.

// certainlyLater is by how much a replacement has to be younger than what is on record. The time on record may be of our clock, when
// the driver gave none, and a restart forgets that.
const certainlyLater = time.Minute

// isReplacement tells that an answer is of a snapshot which was taken in place of the one on record.
func isReplacement(in ContentInput, answer Answer) bool {
	status, source := in.Content.Status, in.Content.Spec.Source.VolumeHandle
	return in.Unlisted && !in.Attempt.Undated && status != nil && status.CreationTime != nil && source != nil && answer.Source == *source &&
		!answer.Taken.IsZero() && answer.Taken.UnixNano() > *status.CreationTime+int64(certainlyLater)
}

// confirmReplacement is isReplacement for an answer that was given in the same way before. Drivers exist that give the time of
// each answer for the time of the snapshot.
func confirmReplacement(in *ContentInput, answer Answer) bool {
	if !isReplacement(*in, answer) {
		return false
	}
	before := in.Attempt.Suspect
	in.Attempt.Suspect = answer
	return before.Handle == answer.Handle && before.Taken.Equal(answer.Taken)
}

// afterQuestion follows a CreateSnapshot that only asked, by the name, for a snapshot whose handle is on record.
func afterQuestion(in ContentInput, answer Answer, err error) After {
	switch {
	case err == nil && answer.Handle == handleOf(in.Content):
		after := afterMade(in, answer)
		after.Attempt.Seen = true
		return checked(in, after)
	case err == nil:
		return afterAnother(in, answer)
	}
	after := afterFailedCreate(in, err)
	if !isEnd(in) {
		return after
	}
	if !fault.ProvesNothing(err) {
		return checked(in, after)
	}
	after = afterUnsure(in, after, err)
	if isResigned(after.Attempt) {
		after.Told = &Told{Warning: true, Reason: wellknown.ReasonSnapshotOutcomeUnknown, Message: fmt.Sprintf(
			"Snapshot %q is deleted, which the driver did not show; it could not say whether it has taken another in its place: look there for one named %q of volume %q",
			handleOf(in.Content), nameAtDriver(in), *in.Content.Spec.Source.VolumeHandle)}
		return checked(in, after) // what is on record goes at least
	}
	return after
}

// afterAnother follows an answer with another id than the one on record.
func afterAnother(in ContentInput, answer Answer) After {
	isFirst := in.Attempt.Suspect.Handle == ""
	switch {
	case isEnd(in) && (answer.Source == "" || answer.Source == *in.Content.Spec.Source.VolumeHandle):
		after := checked(in, After{Attempt: in.Attempt})
		after.Attempt.Replacement = answer.Handle
		return after
	case confirmReplacement(&in, answer):
		return afterReplacement(in, answer)
	}
	// A driver that lost the first snapshot must not pass another one off under the old creation time.
	after := afterFailedCreate(in, fmt.Errorf("the driver answered with snapshot %q, but the content holds %q", answer.Handle, handleOf(in.Content)))
	if isFirst && isReplacement(in, answer) {
		return after // the same answer once more makes it certain
	}
	return checked(in, after)
}

// Asking is the attempt before a question by the name: what the driver may take then in place of a lost one, nobody has seen.
func (a Attempt) Asking() Attempt {
	a.Asked, a.Listed, a.Seen, a.Checked = true, false, false, false
	return a
}

// checked notes that nothing is in the place of a snapshot that goes. The content of one that lives may be deleted as well; it is asked
// about as before, and not without a pause.
func checked(in ContentInput, after After) After {
	if isEnd(in) {
		after.Attempt.Checked, after.Attempt.NotBefore = true, time.Time{}
	}
	return after
}

// isEnd tells that the snapshot is certainly to be deleted, so that it is of no interest any more which one it is: nothing but the end asks
// about what may go.
func isEnd(in ContentInput) bool {
	return in.Content.DeletionTimestamp != nil && permissionOf(in) == granted
}

// nextEnd deletes, and asks before where another snapshot may have been taken in the place of a lost one.
func nextEnd(in ContentInput) ContentStep {
	c := in.Content
	if in.Attempt.Replacement != "" {
		return nextRemove(in)
	}
	a := in.Attempt
	if isContentReady(c) || c.Spec.Source.VolumeHandle == nil || a.Listed || a.Seen || a.Checked {
		return nextDelete(in)
	}
	poll, ok := nextPoll(in, handleOf(c)).(Poll)
	if !ok || poll.Again == nil || poll.Get && a.Given && !a.Asked {
		return nextDelete(in)
	}
	poll.EvenLost = poll.Get
	return poll
}

// afterReplacement follows the answer of such a one: it goes at once, and whatever comes of it, what is lost is looked for, and not asked
// for by its name any more.
func afterReplacement(in ContentInput, answer Answer) After {
	after := AfterPoll(in, Answer{}, fmt.Errorf("the driver does not list snapshot %q any more and has taken another, %q, which is removed again", handleOf(in.Content), answer.Handle))
	after.Attempt.Replacement, after.Attempt.Lost, after.Attempt.NotBefore = answer.Handle, true, time.Time{}
	return after
}

// AfterRemove follows the removal of a replacement, which is as good as done when a content has it after all.
func AfterRemove(in ContentInput, err error) After {
	if err == nil || fault.IsNotFound(err) {
		after := After{Attempt: in.Attempt}
		after.Attempt.Replacement, after.Attempt.NotBefore = "", time.Time{}
		if in.Content.DeletionTimestamp == nil {
			after.Attempt.NotBefore = in.Now.Add(grow(in.Options.RetryStart, in.Options.RetryMax, max(in.Attempt.Failures, 1)))
		}
		return after
	}
	after := afterFailure(in, err)
	after.Status, after.Told = failureOf(in.Content, fmt.Sprintf("failed to remove snapshot %q, which was taken in place of %q: %q",
		in.Attempt.Replacement, handleOf(in.Content), err.Error()), in.Now)
	return after
}

// nextRemove removes a replacement. What is certainly one goes before all else, the end of the content too: nobody else knows of it.
func nextRemove(in ContentInput) ContentStep {
	step := nextDelete(in)
	if d, ok := step.(Delete); ok {
		return Remove{Handle: in.Attempt.Replacement, Secret: d.Secret, WithoutSecret: d.WithoutSecret}
	}
	return step
}

// isForgotten tells that a content which goes with its data has lost the handle: its snapshot says that it was taken, and nobody has cleared the
// status, as is done after a deletion. The name at the driver is made of the snapshot's UID, so what is answered to it is that snapshot, or was
// taken by the question; either goes next.
func isForgotten(in ContentInput) bool {
	c := in.Content
	cleared := c.Status != nil && c.Status.ReadyToUse == nil
	return in.Taken != nil && !cleared && handleOf(c) == "" && c.Spec.Source.VolumeHandle != nil && !in.Attempt.Deleted &&
		c.Spec.DeletionPolicy == snapv1.VolumeSnapshotContentDelete && in.GroupHandle == "" && has(c.Finalizers, wellknown.FinalizerContent)
}

// MayExist tells that there may be a snapshot at the driver, whether a handle is known of it or not.
func MayExist(in ContentInput) bool { return handleOf(in.Content) != "" || isOpen(in) }

// AsksByName tells that a question is asked by the name after the handle has failed. What the driver certainly does not know is lost.
func (p Poll) AsksByName(err error) bool {
	return err != nil && p.Again != nil && (p.EvenLost || !fault.IsNotFound(err))
}

// isAskedByName tells that the driver may be asked for a snapshot by its name.
func isAskedByName(in ContentInput) bool {
	return in.Content.Spec.Source.SnapshotHandle == nil && !in.Attempt.Lost
}
