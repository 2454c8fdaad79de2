// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// checkClone goes from the source claim to its volume to the driver's handle.
func checkClone(in ClaimInput, wanted *Source) (*csi.VolumeContentSource, error) {
	source, name := in.Source.Claim, wanted.Name
	switch {
	case source == nil:
		err := in.Source.ClaimErr
		if err == nil {
			err = errors.New("not found")
		}
		return nil, advise(fmt.Errorf("error getting PVC %s (namespace %q) from api server: %w", name, wanted.Namespace, err),
			"make that claim, or %shas another source", newClaim)
	case source.Status.Phase != corev1.ClaimBound:
		err := fmt.Errorf("the PVC DataSource %s must have a status of Bound.  Got %s", name, source.Status.Phase)
		if source.Status.Phase == corev1.ClaimPending {
			return nil, advise(pending{err}, "the claim goes on by itself when its source is bound")
		}
		return nil, advise(err, "the volume of a lost claim cannot be read: %shas another source", newClaim)
	case isLeaving(source, wellknown.FinalizerCloneSource, in.Claim):
		return nil, advise(fmt.Errorf("the PVC DataSource %s is currently being deleted", name), newClaim+"has another source")
	case source.Spec.StorageClassName == nil:
		return nil, advise(fmt.Errorf("the source PVC (%s) storageclass cannot be empty", name), newClaim+"has a source with spec.storageClassName")
	case in.Claim.Spec.StorageClassName == nil:
		return nil, advise(fmt.Errorf("the requested PVC (%s) storageclass cannot be empty", in.Claim.Name), newClaim+"names its class in spec.storageClassName")
	}
	size, _ := requested(in.Claim)
	if least, _ := requested(source); size < least {
		return nil, advise(fmt.Errorf("error, new PVC request must be greater than or equal in size to the specified PVC data source, requested %d but source is %d", size, least),
			newClaim+"asks for %s or more", resource.NewQuantity(least, resource.BinarySI))
	}
	if source.Spec.VolumeName == "" {
		return nil, advise(fmt.Errorf("volume name is empty in source PVC %s", name), "the claim goes on by itself when its source has a volume")
	}
	if why := unfit(in, source); why != nil {
		return nil, advise(fmt.Errorf("claim in dataSource not bound or invalid: %w", why), "the source has to be bound to a volume of driver %q: correct that, or %shas another source", in.Driver, newClaim)
	}
	if from, to := modeOf(source), modeOf(in.Claim); from != to {
		return nil, advise(fmt.Errorf("the source PVC and destination PVCs must have the same volume mode for cloning.  Source is %s, but new PVC requested %s", from, to), newClaim+"has volumeMode %s", from)
	}
	return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
		Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: in.Source.Volume.Spec.CSI.VolumeHandle},
	}}, nil
}

// unfit tells why the source claim and its volume do not belong together, or are of another driver.
func unfit(in ClaimInput, source *corev1.PersistentVolumeClaim) error {
	volume := in.Source.Volume
	if volume == nil {
		if in.Source.VolumeErr != nil {
			return in.Source.VolumeErr
		}
		return fmt.Errorf("PersistentVolume %s not found", source.Spec.VolumeName)
	}
	ref := volume.Spec.ClaimRef
	switch {
	case volume.Spec.CSI == nil:
		return fmt.Errorf("PersistentVolume %s is not a CSI volume", volume.Name)
	case volume.Spec.CSI.Driver != in.Driver:
		return fmt.Errorf("PersistentVolume %s is of driver %s", volume.Name, volume.Spec.CSI.Driver)
	case ref == nil:
		return fmt.Errorf("PersistentVolume %s has no claim", volume.Name)
	case ref.UID != source.UID || ref.Namespace != source.Namespace || ref.Name != source.Name:
		return fmt.Errorf("PersistentVolume %s is bound to another claim", volume.Name)
	case volume.Status.Phase != corev1.VolumeBound:
		return fmt.Errorf("PersistentVolume %s is %s", volume.Name, volume.Status.Phase)
	}
	return nil
}

func modeOf(claim *corev1.PersistentVolumeClaim) corev1.PersistentVolumeMode {
	if claim.Spec.VolumeMode == nil {
		return corev1.PersistentVolumeFilesystem
	}
	return *claim.Spec.VolumeMode
}
