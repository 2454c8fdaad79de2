// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"math"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Answer is what a driver says of a snapshot.
type Answer struct {
	Handle string
	Ready  bool
	// Taken is zero when the driver does not say.
	Taken time.Time
	Size  int64
	// Source is the volume that it was taken of.
	Source string
}

// lastTime is the last one that a status can hold, which counts nanoseconds.
var lastTime = time.Unix(0, math.MaxInt64)

// AnswerOf reads the driver's words.
func AnswerOf(s *csi.Snapshot) Answer {
	answer := Answer{Handle: s.GetSnapshotId(), Ready: s.GetReadyToUse(), Size: s.GetSizeBytes(), Source: s.GetSourceVolumeId()}
	if taken := s.GetCreationTime(); taken.IsValid() && taken.AsTime().Unix() > 0 && !taken.AsTime().After(lastTime) {
		answer.Taken = taken.AsTime()
	}
	return answer
}

// After is what follows from a call: what to remember, to write and to tell. Status and Told are nil when
// there is nothing new.
type After struct {
	Attempt Attempt
	Status  *snapv1.VolumeSnapshotContentStatus
	Told    *Told
}

// AfterCreate follows a CreateSnapshot that was sent.
func AfterCreate(in ContentInput, answer Answer, err error) After {
	switch {
	case handleOf(in.Content) != "":
		return afterQuestion(in, answer, err)
	case err == nil:
		after := afterMade(in, answer)
		after.Attempt.Given = true
		return after
	}
	after := afterFailedCreate(in, err)
	if after.Attempt.Tried == Settled && isOpen(in) && isGuess(in) {
		// The refusal may be of the parameters that are missing, and nobody knows better ones.
		after.Attempt.Tried, after.Attempt.Unsure, after.Attempt.UnsureFor = Open, unsureTries, unsurePatience
		return after
	}
	after.Attempt.Refused = after.Attempt.Tried == Settled
	if isEnd(in) && after.Attempt.Tried == Open && fault.IsEvasive(err) {
		return afterUnsure(in, after, err)
	}
	after.Attempt.Unsure, after.Attempt.UnsureFor = 0, 0 // before the end nobody's patience counts, and what is at work yet may be waited for
	return after
}

// afterMade follows an answer of the snapshot itself.
func afterMade(in ContentInput, answer Answer) After {
	after := afterAnswer(in, answer)
	after.Attempt.Tried, after.Attempt.Unsure, after.Attempt.UnsureFor, after.Attempt.Deleted, after.Attempt.Refused = Settled, 0, 0, false, false
	return after
}

func afterFailedCreate(in ContentInput, err error) After {
	after := afterFailure(in, err)
	after.Status, after.Told = failureOf(in.Content, fmt.Sprintf("failed to take snapshot of the volume %s: %q", *in.Content.Spec.Source.VolumeHandle, err.Error()), in.Now)
	after.Attempt.Tried = triedAfter(in, err)
	return after
}

// afterUnsure counts an answer that is over and leaves the outcome open. The last question falls on the end
// of the patience.
func afterUnsure(in ContentInput, after After, err error) After {
	a := &after.Attempt
	if a.Unsure == 0 {
		a.UnsureSince = in.Now
	}
	a.Unsure++
	a.UnsureFor = in.Now.Sub(a.UnsureSince)
	wait := grow(time.Second, in.Options.RetryMax, a.Unsure)
	if left := unsurePatience - a.UnsureFor; left > 0 {
		wait = min(wait, left)
	}
	a.NotBefore = in.Now.Add(wait)
	if after.Told == nil && a.Unsure == unsureTries {
		after.Told = &Told{Reason: wellknown.ReasonSnapshotDeletePending, Message: fmt.Sprintf(
			"The deletion waits until the driver says whether it has made the snapshot; its last answer: %s", err)}
	}
	return after
}

// triedAfter tells whether a failure settles what became of all creates so far. A refusal at the door says
// nothing about an earlier call.
func triedAfter(in ContentInput, err error) Tried {
	failure := fault.Of(err)
	switch {
	case failure == nil || failure.Class == fault.Uncertain:
		return Open
	case fault.ProvesNothing(err) && isOpen(in):
		return Open
	default:
		return Settled
	}
}

// AfterPoll follows a GetSnapshot or ListSnapshots.
func AfterPoll(in ContentInput, answer Answer, err error) After {
	if err == nil {
		after := afterAnswer(in, answer)
		after.Attempt.Lost = false
		return checked(in, after)
	}
	after := afterFailure(in, err)
	cause := fmt.Sprintf("failed to list snapshot for content %s: %q", in.Content.Name, err.Error())
	after.Status, after.Told = failureOf(in.Content, told(cause, adviseHandle(in.Content, err)), in.Now)
	return after
}

// ErrNotFound is for AfterPoll when the driver's answer does not contain the snapshot.
func ErrNotFound(handle string) error { return errNotFound(handle) }

// AfterDelete follows a DeleteSnapshot. A driver that does not know the snapshot has nothing left to do.
func AfterDelete(in ContentInput, err error) After {
	if err == nil || fault.IsNotFound(err) {
		after := After{Attempt: in.Attempt}
		after.Attempt.Deleted, after.Attempt.Failures = true, 0
		return after
	}
	after := afterFailure(in, err)
	after.Status, after.Told = deletionFailureOf(in.Content, "Failed to delete snapshot: "+err.Error(), in.Now)
	return after
}

// AfterSecret follows a secret that could not be read, before a call that was not made.
func AfterSecret(in ContentInput, step ContentStep, err error) After {
	after := afterFailure(in, err)
	c := in.Content
	if c.DeletionTimestamp != nil && apierrors.IsNotFound(err) && after.Attempt.SecretMissing.IsZero() {
		after.Attempt.SecretMissing = in.Now
	}
	record := LackSecret(in, step, err)
	after.Status, after.Told = record.Status, record.Told
	return after
}

// LackSecret shows that a call is not made, because its secret could not be read.
func LackSecret(in ContentInput, step ContentStep, err error) Record {
	c := in.Content
	err = advised{err, adviseSecret(in, step, err)}
	switch step.(type) {
	case Delete:
		return deleteFailure(in, fmt.Errorf("Failed to get snapshot credentials: %w", err))
	case Poll:
		return recordFailure(in, fmt.Errorf("failed to get credentials for snapshot content %s: %w", c.Name, err))
	default:
		return recordFailure(in, badInput(c, fmt.Errorf("cannot get credentials for snapshot content %q: %w", c.Name, err)))
	}
}

// LackRight shows that a deletion waits for the right to read what might forbid it.
func LackRight(in ContentInput, err error) Record {
	return deleteFailure(in, advised{fmt.Errorf("Cannot tell whether the snapshot may be deleted: %w", err), adviseRight(in.Content, err)})
}

func afterAnswer(in ContentInput, answer Answer) After {
	after := After{Attempt: in.Attempt}
	after.Attempt.Failures, after.Attempt.NotBefore = 0, time.Time{}
	after.Attempt.Undated = after.Attempt.Undated || answer.Taken.IsZero()
	if status, changed := BuildContentStatus(in.Content.Status, answer, in.Now); changed {
		after.Status = status
	}
	if !answer.Ready {
		after.Attempt.Polls++
		after.Attempt.NotBefore = in.Now.Add(grow(pollStart, pollMax, after.Attempt.Polls))
	}
	return after
}

func afterFailure(in ContentInput, err error) After {
	after := After{Attempt: in.Attempt}
	after.Attempt.Failures++
	limit := in.Options.RetryMax
	if fault.IsBusy(err) {
		limit = min(limit, busyMax)
	}
	wait := grow(in.Options.RetryStart, limit, after.Attempt.Failures)
	if asked, ok := fault.RetryDelay(err); ok {
		// The driver is likely to be at work until then.
		wait = asked
	}
	after.Attempt.NotBefore = in.Now.Add(wait)
	return after
}

// BuildContentStatus is the status that follows from an answer, and whether it differs. What says that data
// exists is written once and kept. An answer ends every earlier error.
func BuildContentStatus(current *snapv1.VolumeSnapshotContentStatus, answer Answer, now time.Time) (*snapv1.VolumeSnapshotContentStatus, bool) {
	status := &snapv1.VolumeSnapshotContentStatus{}
	if current != nil {
		status = current.DeepCopy()
	}
	changed := status.Error != nil
	status.Error = nil
	if status.SnapshotHandle == nil || *status.SnapshotHandle == "" {
		status.SnapshotHandle, changed = &answer.Handle, true
	}
	if status.ReadyToUse == nil || *status.ReadyToUse != answer.Ready {
		status.ReadyToUse, changed = &answer.Ready, true
	}
	if status.CreationTime == nil {
		taken := answer.Taken
		if taken.IsZero() {
			taken = now
		}
		nanoseconds := taken.UnixNano()
		status.CreationTime, changed = &nanoseconds, true
	}
	if status.RestoreSize == nil && answer.Size > 0 {
		status.RestoreSize, changed = &answer.Size, true
	}
	return status, changed
}

// failureOf is the status and the event of a failing create or poll; both nil when users know it.
func failureOf(c *snapv1.VolumeSnapshotContent, cause string, now time.Time) (*snapv1.VolumeSnapshotContentStatus, *Told) {
	if c.Status == nil {
		return failed(c, wellknown.ReasonSnapshotCreationFailed, firstFailure+bounded(cause), now)
	}
	return failed(c, wellknown.ReasonSnapshotCheckFailed, laterFailure+bounded(cause), now)
}

// deletionFailureOf is the same for a failing deletion. The content's readiness is no longer of interest.
func deletionFailureOf(c *snapv1.VolumeSnapshotContent, message string, now time.Time) (*snapv1.VolumeSnapshotContentStatus, *Told) {
	return failed(c, wellknown.ReasonSnapshotDeleteError, bounded(message), now)
}

func failed(c *snapv1.VolumeSnapshotContent, reason, message string, now time.Time) (*snapv1.VolumeSnapshotContentStatus, *Told) {
	status := &snapv1.VolumeSnapshotContentStatus{}
	if c.Status != nil {
		status = c.Status.DeepCopy()
	}
	if status.Error != nil && isSameCause(messageOf(status.Error), message) {
		return nil, nil
	}
	at, ready := metav1.NewTime(now), false
	status.Error = &snapv1.VolumeSnapshotError{Time: &at, Message: &message}
	if reason != wellknown.ReasonSnapshotDeleteError || status.ReadyToUse == nil {
		status.ReadyToUse = &ready
	}
	return status, &Told{Warning: true, Reason: reason, Message: message}
}
