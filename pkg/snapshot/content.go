// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// NextContentStep decides what happens next to a VolumeSnapshotContent.
func NextContentStep(in ContentInput) ContentStep {
	c := in.Content
	source := c.Spec.Source
	switch {
	case c.Spec.Driver != in.Options.Driver:
		return Ignore{"content of another driver"}
	case isForeign(in) && needsClass(c):
		return nextMisclassed(in)
	case (source.VolumeHandle == nil) == (source.SnapshotHandle == nil):
		if c.DeletionTimestamp != nil {
			if step := nextLeaving(in); step != nil {
				return step
			}
		}
		const advice = "make the content anew, with exactly one of spec.source.volumeHandle and spec.source.snapshotHandle"
		return Tell{Told{true, wellknown.ReasonContentValidationError, told("Exactly one of VolumeHandle and SnapshotHandle should be specified", advice)}, advice}
	}
	if in.Attempt.Replacement != "" && in.Attempt.Lost {
		return nextRemove(in)
	}
	if c.DeletionTimestamp != nil {
		if step := nextLeaving(in); step != nil {
			return step
		}
	}
	return nextStaying(in)
}

// isForeign tells that the content's class is of another driver.
func isForeign(in ContentInput) bool {
	return in.Class != nil && in.Class.Driver != in.Options.Driver
}

// needsClass tells that the content's class still counts. With a snapshot at the driver, or with the deletion,
// the content's own driver does: it has to see to what there is.
func needsClass(c *snapv1.VolumeSnapshotContent) bool {
	return c.DeletionTimestamp == nil && (handleOf(c) == "" || c.Spec.Source.VolumeHandle == nil)
}

// nextMisclassed is for a content whose class has become another driver's before anything was taken or found. Nothing is begun then, and
// nobody else would say why: to the other driver's sidecar the content is ours.
func nextMisclassed(in ContentInput) ContentStep {
	c := in.Content
	if isContentReady(c) || isDynamicMember(in) || c.Spec.Source.VolumeHandle != nil && c.Spec.VolumeSnapshotRef.UID == "" {
		return Ignore{"its class is of another driver"}
	}
	return recordFailure(in, badClass(c, in.Class.Name, errNoClass(in)))
}

// nextStaying is for a content that is not to be taken apart.
func nextStaying(in ContentInput) ContentStep {
	c := in.Content
	imported := c.Spec.Source.SnapshotHandle != nil
	switch {
	case isContentReady(c):
		if isMarked(c) && !imported {
			return DropMark{}
		}
		if c.Status.Error != nil && c.DeletionTimestamp == nil {
			// Somebody else's create was refused while ours succeeded, or an old copy was patched: what is ready has no error.
			status := c.Status.DeepCopy()
			status.Error = nil
			return Record{Status: status}
		}
		return Ignore{"settled"}
	case isDynamicMember(in):
		return Ignore{"member of a group snapshot, goes with its group"}
	case imported:
		return nextPoll(in, *c.Spec.Source.SnapshotHandle)
	case c.Spec.VolumeSnapshotRef.UID == "":
		return Ignore{"not bound to a snapshot yet"}
	case handleOf(c) == "":
		return nextCreate(in)
	case isMarked(c):
		// The handle is known, so nothing can be lost any more.
		return DropMark{}
	default:
		return nextPoll(in, handleOf(c))
	}
}

func nextCreate(in ContentInput) ContentStep {
	c := in.Content
	first := !isMarked(c) && !isOpen(in)
	if first && in.Taken != nil {
		if !in.Live {
			return Confirm{} // an old copy may not show the handle
		}
		return recordFailure(in, errTakenBefore(in))
	}
	create, err := buildCreate(in)
	if err != nil {
		return recordFailure(in, badInput(c, err))
	}
	if wait := in.Attempt.NotBefore.Sub(in.Now); wait > 0 {
		if in.Attempt.Tried == Open && !isMarked(c) {
			return Mark{}
		}
		return Wait{"the last try of the driver failed", wait}
	}
	if first && mayBeTaken(in) {
		return Confirm{}
	}
	return create
}

// errTakenBefore is about a content that does not know its handle any more, such as one that was made anew from a manifest, which leaves out
// the status. Taking the snapshot again would put other data under the old creation time.
func errTakenBefore(in ContentInput) error {
	c := in.Content
	ref := c.Spec.VolumeSnapshotRef
	return advise(fmt.Errorf("VolumeSnapshot %s/%s was taken at %s, and VolumeSnapshotContent %s does not say any more what the driver calls it", ref.Namespace, ref.Name, in.Taken.UTC().Format(time.RFC3339), c.Name),
		"if the driver still has it, as %q, snapshotter import brings it back under another name; or kubectl annotate vsc %s %s=yes has the driver asked by that name, which takes a new one if it is gone", nameAtDriver(in), c.Name, wellknown.AnnBeingCreated)
}

func nextPoll(in ContentInput, handle string) ContentStep {
	c := in.Content
	imported := c.Spec.Source.SnapshotHandle != nil
	poll := Poll{
		Handle: handle,
		Get:    in.Capabilities.Has(csi.ControllerServiceCapability_RPC_GET_SNAPSHOT),
		List:   in.Capabilities.Has(csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS),
	}
	if imported && !poll.Get && !poll.List {
		// Nobody can ask this driver; the one who wrote the handle is believed.
		status, _ := BuildContentStatus(c.Status, Answer{Handle: handle, Ready: true}, in.Now)
		return Record{Status: status}
	}
	secret, err := listSecret(in)
	switch {
	case imported && err != nil:
		return recordFailure(in, err)
	case err != nil:
		poll.Get, poll.List = false, false
	default:
		poll.Secret = secret
	}
	if isAskedByName(in) {
		// The CSI spec makes a repeated create the sure way to ask; it makes nothing new.
		if create, err := buildCreate(in); err == nil {
			create.Mark, create.Parameters = false, ""
			poll.Again = &create
		} else if !poll.Get && !poll.List {
			return recordFailure(in, badInput(c, err))
		}
	}
	if wait := in.Attempt.NotBefore.Sub(in.Now); wait > 0 {
		return Wait{"not ready at the driver yet", wait}
	}
	return poll
}

// recordFailure shows an error that was found before any call.
func recordFailure(in ContentInput, err error) Record {
	record := Record{Advice: adviceOf(err)}
	record.Failure = told(err.Error(), record.Advice)
	record.Status, record.Told = failureOf(in.Content, record.Failure, in.Now)
	return record
}

// badInput words the errors about what the snapshot is to be made of.
func badInput(c *snapv1.VolumeSnapshotContent, err error) error {
	return advised{fmt.Errorf("failed to get input parameters to create snapshot for content %s: %q", c.Name, err.Error()), adviceOf(err)}
}

// isDynamicMember tells the members of a group that was taken as a whole: no call of ours may touch them.
func isDynamicMember(in ContentInput) bool {
	return in.Content.Annotations[wellknown.AnnGroupSnapshotHandle] != "" ||
		in.GroupHandle != "" && in.Content.Spec.Source.VolumeHandle != nil
}

// isOpen tells that a snapshot may exist at the driver, or may come to exist, that no handle is known of.
func isOpen(in ContentInput) bool {
	if in.Content.Spec.Source.VolumeHandle == nil || handleOf(in.Content) != "" || isDynamicMember(in) || in.Attempt.Deleted {
		return false
	}
	switch {
	case in.Attempt.Tried == Open:
		return true
	case in.Live && isEnd(in) && isForgotten(in):
		return !in.Attempt.Refused
	case in.Attempt.Tried == Settled:
		return false
	default:
		// A mark that this process did not write is somebody's before us, who may have sent a create; but
		// nobody was there before us for a content that is younger than our lead.
		return isMarked(in.Content) && !in.Attempt.Fresh
	}
}

func isMarked(c *snapv1.VolumeSnapshotContent) bool {
	_, marked := c.Annotations[wellknown.AnnBeingCreated]
	return marked
}

func isContentReady(c *snapv1.VolumeSnapshotContent) bool {
	return c.Status != nil && c.Status.ReadyToUse != nil && *c.Status.ReadyToUse && (handleOf(c) != "" || c.Spec.Source.SnapshotHandle != nil)
}

func handleOf(c *snapv1.VolumeSnapshotContent) string {
	if c.Status == nil || c.Status.SnapshotHandle == nil {
		return ""
	}
	return *c.Status.SnapshotHandle
}

// DataHandle is the id of what a content has at the driver, also when the driver was never heard of it: what was brought in
// has it in its source. A status without readiness says that it was deleted, while somebody else still holds the content.
func DataHandle(c *snapv1.VolumeSnapshotContent) string {
	handle := handleOf(c)
	if source := c.Spec.Source.SnapshotHandle; handle == "" && source != nil && (c.Status == nil || c.Status.ReadyToUse != nil) {
		return *source
	}
	return handle
}

const (
	// pollStart and pollMax bound the intervals of asking whether a snapshot is ready: an upload of hours
	// must not be asked for every second, and its end must not be learnt minutes late.
	pollStart = time.Second
	pollMax   = 15 * time.Second
	// busyMax bounds the delay after an answer that says "soon".
	busyMax = 30 * time.Second
)

// grow doubles a delay from start for each time but the first, up to limit.
func grow(start, limit time.Duration, times int) time.Duration {
	delay := start
	for range max(times, 1) - 1 {
		if delay >= limit {
			break
		}
		delay *= 2
	}
	return min(delay, limit)
}

// mayBeTaken tells that the snapshot may have been taken long ago: only a live look can tell.
func mayBeTaken(in ContentInput) bool { return !in.Live && (in.Snapshot == Unknown || in.Late) }
