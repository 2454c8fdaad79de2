// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
)

// stillNeeded tells who needs the data of a volume although its PersistentVolume was let go. A phase is a
// record and can be wrong, as after a restore of objects that got other UIDs; data that is gone stays gone.
func (in VolumeInput) stillNeeded(handle string) error {
	if owner := in.Owner; owner != nil {
		return advise(fmt.Errorf("volume %q is not deleted: claim %s/%s exists and names PersistentVolume %s", handle, owner.Namespace, owner.Name, in.Volume.Name),
			"%s, and it is bound again; or delete the claim, and the volume goes", mendedReference(in.Volume, owner))
	}
	for _, twin := range in.Twins {
		if !isLeft(twin) {
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

// isLeft tells that the data of a PersistentVolume is to go for its part too.
func isLeft(volume *corev1.PersistentVolume) bool {
	return volume.Status.Phase == corev1.VolumeReleased && volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
}

// isStranded tells that a volume is being deleted and will never be released: nothing has claimed it.
func isStranded(volume *corev1.PersistentVolume) bool {
	return volume.Status.Phase == corev1.VolumeAvailable && volume.DeletionTimestamp != nil && isProtected(volume)
}

// stranded tells the way out. Only released volumes lose their data (spec 5.3); one that nobody has let go
// of is not deleted because its object is, and waiting alone changes nothing.
func stranded(volume *corev1.PersistentVolume) error {
	return fault.Terminal(advise(fmt.Errorf("PersistentVolume %s is being deleted and was never released, so that its data is not touched", volume.Name),
		"set persistentVolumeReclaimPolicy Retain, and it goes while the data stays at the driver; delete that there if nobody needs it"))
}
