// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// FindVolumes lists the PersistentVolumes that may have a volume of a driver, in the driver's form and in the one from before it. The
// handle in that form is told by a volume that has been translated back, nil for drivers that replace nothing; what it has lost on the
// way is not asked for, so that more may be found than have the volume.
func FindVolumes(volumes *Store[*corev1.PersistentVolume], driver, handle string, translated *corev1.PersistentVolume) []*corev1.PersistentVolume {
	found := volumes.ByIndex(ByHandle, HandleKey(driver, handle))
	if translated == nil {
		return found
	}
	found = slices.Clip(found)
	found = append(found, volumes.ByIndex(ByInTree, handle)...)
	if id := inTreeID(translated); id != handle {
		found = append(found, volumes.ByIndex(ByInTree, id)...)
	}
	return found
}

// inTreeID is what a volume is called in the form from before its driver, empty for those of other forms. Who was not
// replaced by a driver has none here.
func inTreeID(v *corev1.PersistentVolume) string {
	switch source := v.Spec.PersistentVolumeSource; {
	case source.AWSElasticBlockStore != nil:
		return path.Base(source.AWSElasticBlockStore.VolumeID) // with its zone before it, or without
	case source.GCEPersistentDisk != nil:
		return source.GCEPersistentDisk.PDName
	case source.Cinder != nil:
		return source.Cinder.VolumeID
	case source.AzureDisk != nil:
		return source.AzureDisk.DataDiskURI
	case source.AzureFile != nil:
		return source.AzureFile.ShareName
	case source.VsphereVolume != nil:
		return source.VsphereVolume.VolumePath
	case source.PortworxVolume != nil:
		return source.PortworxVolume.VolumeID
	default:
		return ""
	}
}
