// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// LeftBehind tells of what may stay at the driver when a PersistentVolume ends an attempt; nil where it has what the attempt has made. Who finds
// the volume of a call that hangs may write its PersistentVolume by hand, and nothing shows whether that has the right handle.
func (c Config) LeftBehind(attempt *Attempt, volume *corev1.PersistentVolume) error {
	var err error
	_, provisioned := volume.Annotations[wellknown.AnnDeletionSecretName] // every provisioner sets it, to nothing where there is no secret
	switch {
	case attempt.Made != nil:
		if holds, unknown := c.Holds(volume, attempt, attempt.Made.GetVolumeId()); holds || unknown != nil {
			return nil
		}
		err = fmt.Errorf("PersistentVolume %s is not of volume %q, which the driver has made for the claim", volume.Name, attempt.Made.GetVolumeId())
	case provisioned:
		return nil
	default:
		err = fmt.Errorf("PersistentVolume %s was written by hand while it was open whether the driver has made a volume for the claim", volume.Name)
	}
	return advise(err, "it ends the request, and the driver is not asked any more: if it does not have what the driver made, find the volume with the name %s at the driver and delete it there, since nothing else knows of it", attempt.Name())
}
