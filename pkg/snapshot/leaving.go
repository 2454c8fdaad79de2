// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

const (
	// unsureTries is how often a create with an open outcome is repeated promptly for a snapshot that is being
	// deleted, when each answer leaves it open. What a driver knows it mostly says then.
	unsureTries = 3
	// unsurePatience is for how long it is repeated at all. An outage of what stands behind a driver is answered
	// with the same codes and lasts for minutes; giving up in it would leave a snapshot that nobody knows.
	unsurePatience = 5 * time.Minute
	// secretPatience is how long a deletion waits for a secret that does not exist.
	secretPatience = 2 * time.Minute
	// classPatience is how long one waits for a class that does not exist, or cannot be used.
	classPatience = 2 * time.Minute
)

type permission int

const (
	denied permission = iota
	granted
	// unasked: only a live read can tell.
	unasked
)

// permissionOf tells whether a content with a deletion time may be taken apart. Users delete contents of
// living snapshots by mistake; that must not cost them the data.
func permissionOf(in ContentInput) permission {
	_, marked := in.Content.Annotations[wellknown.AnnBeingDeleted]
	switch in.Snapshot {
	case Alive:
		// A mark that contradicts the cache may be newer, or left over from an earlier life.
		if marked && !in.Live {
			return unasked
		}
		return denied
	case Deleting:
		return granted
	case Gone:
		if !in.Live {
			return unasked
		}
		return granted
	default:
		return permissionUnseen(in, marked)
	}
}

// permissionUnseen is for a program that may not read snapshots: then only the other half's word counts.
func permissionUnseen(in ContentInput, marked bool) permission {
	neverBound := in.Content.Spec.Source.SnapshotHandle != nil && in.Content.Spec.VolumeSnapshotRef.UID == ""
	switch {
	case !in.Live:
		return unasked
	case marked || neverBound:
		return granted
	default:
		return denied
	}
}

// nextLeaving is for a content with a deletion time; nil means that it is treated as if it had none.
func nextLeaving(in ContentInput) ContentStep {
	if isOpen(in) && !isResigned(in.Attempt) {
		if permissionOf(in) == unasked {
			return Confirm{} // how long it is asked counts from the end, which has to be certain
		}
		// Only a repeat of the same create can tell whether there is something to delete.
		return nextCreate(in)
	}
	switch permissionOf(in) {
	case denied:
		return nil
	case unasked:
		return Confirm{}
	case granted:
	}
	return nextGranted(in)
}

// isResigned tells that the driver has been asked long enough what became of a create.
func isResigned(a Attempt) bool { return a.Unsure >= unsureTries && a.UnsureFor >= unsurePatience }

// nextGranted takes a content apart.
func nextGranted(in ContentInput) ContentStep {
	c := in.Content
	switch {
	case isOpen(in):
		return ReleaseContent{Told: &Told{Warning: true, Reason: wellknown.ReasonSnapshotOutcomeUnknown, Message: fmt.Sprintf(
			"The driver could not say whether it has made a snapshot; look there for one named %q of volume %q",
			nameAtDriver(in), *c.Spec.Source.VolumeHandle)}}
	case in.Attempt.Deleted:
		if DataHandle(c) != "" && heldByOthers(c) {
			return nextCleared(c, nil)
		}
		return release(c)
	case isForgotten(in) && in.Live:
		return ReleaseContent{Told: &Told{Warning: true, Reason: wellknown.ReasonSnapshotOutcomeUnknown, Message: fmt.Sprintf(
			"The snapshot was taken at %s, the content does not say any more what the driver calls it, and the driver has refused to be asked by its name; look there for one named %q of volume %q",
			in.Taken.UTC().Format(time.RFC3339), nameAtDriver(in), *c.Spec.Source.VolumeHandle)}}
	case !ownsData(in) && !isForgotten(in):
		return release(c)
	case !in.Live:
		return Confirm{}
	case in.SharedWith != "":
		return nextShared(in)
	default:
		return nextEnd(in)
	}
}

// nextShared lets a content go whose snapshot at the driver another one has too. That one's deletion, or its
// owner's wish to keep it, decides about the data from now on.
func nextShared(in ContentInput) ContentStep {
	c := in.Content
	told := &Told{Warning: true, Reason: wellknown.ReasonSnapshotHandleShared, Message: fmt.Sprintf(
		"Let go without deleting snapshot %q at the driver, because VolumeSnapshotContent %s has it too", DataHandle(c), in.SharedWith)}
	if heldByOthers(c) {
		return nextCleared(c, told)
	}
	return ReleaseContent{told}
}

// nextCleared is for a content that stays for others; without the handle nobody deletes a second time. The
// mark goes first: without a handle it would say that a create may be open.
func nextCleared(c *snapv1.VolumeSnapshotContent, told *Told) ContentStep {
	if isMarked(c) {
		return DropMark{}
	}
	return ClearStatus{told}
}

// ownsData tells that there is a snapshot at the driver which goes with the content.
func ownsData(in ContentInput) bool {
	c := in.Content
	return c.Spec.DeletionPolicy == snapv1.VolumeSnapshotContentDelete && DataHandle(c) != "" && in.GroupHandle == ""
}

func release(c *snapv1.VolumeSnapshotContent) ContentStep {
	if !has(c.Finalizers, wellknown.FinalizerContent) {
		return Ignore{"held by others only"}
	}
	return ReleaseContent{}
}

func heldByOthers(c *snapv1.VolumeSnapshotContent) bool {
	for _, f := range c.Finalizers {
		if f != wellknown.FinalizerContent {
			return true
		}
	}
	return false
}

func nextDelete(in ContentInput) ContentStep {
	named, secret := secretAnnotations(in.Content)
	if named && secret == nil {
		return deleteFailure(in, fmt.Errorf("Failed to get snapshot credentials: %w", errNoSecretName(in.Content)))
	}
	if wait := in.Attempt.NotBefore.Sub(in.Now); wait > 0 {
		return Wait{"the last try of the driver failed", wait}
	}
	return Delete{Handle: DataHandle(in.Content), Secret: secret, WithoutSecret: isPatienceOver(in)}
}

// isPatienceOver tells that a secret has been missing for so long that a deletion is tried without it.
func isPatienceOver(in ContentInput) bool {
	since := in.Attempt.SecretMissing
	return isEnd(in) && !since.IsZero() && in.Now.Sub(since) >= secretPatience
}

func deleteFailure(in ContentInput, err error) Record {
	record := Record{Advice: adviceOf(err)}
	record.Failure = told(err.Error(), record.Advice)
	record.Status, record.Told = deletionFailureOf(in.Content, record.Failure, in.Now)
	return record
}
