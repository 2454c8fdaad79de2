// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
)

// isUnclaimed tells that a volume has no claim that could have let it go: a phase that says so was written before the claimRef was
// edited. A volume stays Released only while its claimRef has the UID of a claim that is gone.
func isUnclaimed(volume *corev1.PersistentVolume) bool {
	return volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.UID == ""
}

// stillNeeded tells who needs the data of a volume although its PersistentVolume was let go. A phase is a
// record and can be wrong, as after a restore of objects that got other UIDs; data that is gone stays gone.
func (in VolumeInput) stillNeeded(handle string) error {
	switch owner := in.Owner; {
	case owner == nil:
	case owner.Spec.VolumeName == "":
		return advise(fmt.Errorf("volume %q is not deleted: spec.claimRef of PersistentVolume %s leads to claim %s/%s, which exists", handle, in.Volume.Name, owner.Namespace, owner.Name),
			"wait for kube-controller-manager to bind the two, and see the events of the claim if it does not; or delete the claim, and the volume goes")
	default:
		return advise(fmt.Errorf("volume %q is not deleted: claim %s/%s exists and names PersistentVolume %s", handle, owner.Namespace, owner.Name, in.Volume.Name),
			"%s, and it is bound again; or delete the claim, and the volume goes", mendedReference(in.Volume, owner))
	}
	for _, twin := range in.Twins {
		if !IsLeft(twin.PersistentVolume) || isUnclaimed(twin.PersistentVolume) || twin.Owner != nil {
			return advise(fmt.Errorf("volume %q is not deleted: PersistentVolume %s has it too", handle, twin.Name),
				"set persistentVolumeReclaimPolicy Retain and delete PersistentVolume %s to keep the data for the other, or delete the other", in.Volume.Name)
		}
	}
	return nil
}

// mendedReference is what binds a volume to a claim again that names it.
func mendedReference(volume *corev1.PersistentVolume, owner *corev1.PersistentVolumeClaim) string {
	ref := volume.Spec.ClaimRef
	if ref != nil && ref.Namespace == owner.Namespace && ref.Name == owner.Name {
		return fmt.Sprintf("set spec.claimRef.uid of the PersistentVolume to %s, the UID of the claim", owner.UID)
	}
	return fmt.Sprintf("set spec.claimRef of the PersistentVolume to namespace %s, name %s and uid %s, those of the claim", owner.Namespace, owner.Name, owner.UID)
}

// IsLeft tells that the data of a PersistentVolume is to go for its part too.
func IsLeft(volume *corev1.PersistentVolume) bool {
	return volume.Status.Phase == corev1.VolumeReleased && volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
}

// afterDeletion ends with a volume that the driver has removed. It may have been taken back at that time: then whoever sees it has to
// know, because it looks as if its data were there. A cache is not enough to say so: it may show the volume, or its claim, as it was before.
func (in VolumeInput) afterDeletion() VolumeStep {
	volume := in.Volume
	switch going := volume.DeletionTimestamp != nil; {
	case going && !isProtected(volume):
		return Ignore{"the volume was handled before"}
	case going || IsLeft(volume) && in.Owner == nil:
		return Release{}
	case !in.Live:
		return Confirm{}
	}
	err := advise(fmt.Errorf("PersistentVolume %s is to stay, but the driver had deleted its volume %q, or did not know it, before that was said, so that its data is gone", volume.Name, in.handle()),
		"bind no claim to the PersistentVolume, and delete it when the storage does not have the volume either")
	if !IsLeft(volume) {
		err = fault.Terminal(err) // else it goes with the claim that has it, of whose end it does not hear
	}
	if isProtected(volume) && isExplicit(volume.Spec.PersistentVolumeReclaimPolicy) {
		return Unprotect{Hollow: err}
	}
	return Reject{Err: err}
}

// handle names the volume of the PersistentVolume, for users.
func (in VolumeInput) handle() string {
	if translated, err := in.AsCSI(in.Volume); err == nil && translated.Spec.CSI != nil {
		return translated.Spec.CSI.VolumeHandle
	}
	return in.Volume.Name
}

// Doubted is what there is to say of a PersistentVolume whose volume is to stay by now, after the driver was asked to delete it and has not said
// what became of that; nil while it is to go for its part.
func (in VolumeInput) Doubted(step VolumeStep) error {
	switch step.(type) {
	case Ignore, Protect, Unprotect, Reject:
	default:
		return nil
	}
	if in.Volume == nil || in.isToGo() {
		return nil
	}
	return advise(fmt.Errorf("volume %q of PersistentVolume %s is to stay, but the driver was asked to delete it before that was said, and has not said what became of it, so that its data may be gone", in.handle(), in.Volume.Name),
		"look at the volume before it is used")
}

// isToGo tells that a volume goes for its own part, or that somebody has seen to its end.
func (in VolumeInput) isToGo() bool {
	v := in.Volume
	return v.DeletionTimestamp != nil && !isProtected(v) || IsLeft(v) && !isUnclaimed(v) && in.Owner == nil
}

// isStranded tells that a volume is being deleted and will not be released by itself: nothing has claimed it, or its claim waits for a
// volume that is not being deleted.
func isStranded(volume *corev1.PersistentVolume) bool {
	switch volume.Status.Phase {
	case corev1.VolumeAvailable, corev1.VolumePending, corev1.VolumeFailed, "":
		return volume.DeletionTimestamp != nil && isProtected(volume)
	default:
		return false
	}
}

// stranded tells the way out. Only released volumes lose their data (spec 5.3); one that nobody has let go
// of is not deleted because its object is, and waiting alone changes nothing.
func stranded(volume *corev1.PersistentVolume) Reject {
	if volume.Status.Phase != corev1.VolumeAvailable && volume.Status.Phase != corev1.VolumeFailed && !isUnclaimed(volume) {
		claim := volume.Spec.ClaimRef.Namespace + "/" + volume.Spec.ClaimRef.Name
		return Reject{Claim: volume.Spec.ClaimRef, Err: fault.Terminal(advise(
			fmt.Errorf("PersistentVolume %s is being deleted before claim %s was bound to it, and Kubernetes binds no volume that is being deleted", volume.Name, claim),
			"delete claim %s, and both go; a new claim gets a new volume", claim))}
	}
	if volume.Status.Phase == corev1.VolumeFailed {
		return Reject{Err: fault.Terminal(advise(fmt.Errorf("PersistentVolume %s is being deleted in phase Failed, in which nobody deletes its volume", volume.Name),
			"set persistentVolumeReclaimPolicy Retain, and it goes; then look whether the storage has the volume still, and delete it there if nobody needs it"))}
	}
	return Reject{Err: fault.Terminal(advise(fmt.Errorf("PersistentVolume %s is being deleted and was never released, so that its data is not touched", volume.Name),
		"set persistentVolumeReclaimPolicy Retain, and it goes while the data stays at the driver; delete that there if nobody needs it"))}
}
