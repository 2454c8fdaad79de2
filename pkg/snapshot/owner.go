// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"github.com/csi-tandem/csi-tandem/pkg/binding"
)

// ownership is the answer to: is this snapshot one of our driver's?
type ownership int

const (
	ours ownership = iota
	foreign
	// nobodys: no rule yields a driver.
	nobodys
	// unread: the answer needs the claim's volume.
	unread
)

// owner is a driver, and what says that it is the one.
type owner struct{ driver, from string }

// whose applies the rules in their order, the first that yields a driver decides: the content, the class,
// the claim's volume.
func whose(in SnapshotInput) (ownership, owner) {
	if in.Options.Scope == All {
		return ours, owner{}
	}
	switch {
	case in.Content != nil:
		return isOurs(in, owner{in.Content.Spec.Driver, "VolumeSnapshotContent " + in.Content.Name})
	case in.GoneDriver != "":
		return isOurs(in, owner{in.GoneDriver, "the VolumeSnapshotContent"})
	case in.Class != nil:
		return isOurs(in, owner{in.Class.Driver, "VolumeSnapshotClass " + in.Class.Name})
	case in.Snapshot.Spec.VolumeSnapshotClassName != nil && in.Snapshot.DeletionTimestamp == nil:
		// Only for a deletion a vanished class is no obstacle: nobody will bring it back for that.
		return nobodys, owner{}
	default:
		return whoseVolume(in)
	}
}

func whoseVolume(in SnapshotInput) (ownership, owner) {
	switch {
	case !binding.IsDynamic(in.Snapshot) || checkClaim(in) != nil:
		return nobodys, owner{}
	case !in.VolumeRead:
		return unread, owner{}
	case in.Volume == nil || in.Volume.Spec.CSI == nil:
		return nobodys, owner{}
	default:
		return isOurs(in, owner{in.Volume.Spec.CSI.Driver, "the claim's PersistentVolume " + in.Volume.Name})
	}
}

func isOurs(in SnapshotInput, of owner) (ownership, owner) {
	if of.driver == in.Options.Driver {
		return ours, of
	}
	return foreign, of
}

// nextStranger is the step for a snapshot that no rule gives to a driver. Each driver's binder sees it, so
// none writes its status: after a while, if nobody has said anything, an event tells what is missing.
func nextStranger(in SnapshotInput) SnapshotStep {
	if in.Snapshot.DeletionTimestamp != nil {
		return nextOrphan(in)
	}
	if in.Snapshot.Status != nil {
		return Ignore{"no driver can be found for it, and somebody has written its status"}
	}
	if age := in.Now.Sub(in.Snapshot.CreationTimestamp.Time); age < strangerDelay {
		return Wait{"no driver can be found for it yet", strangerDelay - age}
	}
	switch step := nextLiving(in).(type) {
	case Reject:
		return Tell{Told{Warning: true, Reason: step.Reason, Message: step.Message}, step.Advice}
	case FetchContent:
		// Only a read, and without it a content that is missing would never be told of.
		return step
	default:
		return Ignore{"no driver can be found for it"}
	}
}

// nextOrphan lets a deleted snapshot go that never got a content and whose class and claim are gone too.
// Every binder would come to the same end, so it does no harm that more than one may do it.
func nextOrphan(in SnapshotInput) SnapshotStep {
	if len(ownFinalizers(in.Snapshot)) == 0 {
		return Ignore{"being deleted, and held by others only"}
	}
	if name := binding.ContentName(in.Snapshot); name != "" && !in.ContentLive {
		return FetchContent{name}
	}
	if age := in.Now.Sub(in.Snapshot.DeletionTimestamp.Time); age < orphanDelay {
		return Wait{"being deleted, and no driver can be found for it", orphanDelay - age}
	}
	return nextDeletion(in)
}
