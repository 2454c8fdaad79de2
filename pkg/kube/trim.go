// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// What the caches keep of an object is what the rooms read of it, and of what is bound or of another driver
// that is little. Patches stay right: they are differences of a trimmed object and its edited copy, and what
// is not in either is not in the patch. Finalizers, which a patch replaces as a whole, are never trimmed.

// lastApplied is kubectl's copy of the whole object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// TrimApplied drops what nobody reads of any kind.
func TrimApplied[T Object](obj T) {
	delete(obj.GetAnnotations(), lastApplied)
	obj.SetSelfLink("")
	obj.SetGenerateName("")
}

// claimAnnotations say of any claim whose it is, and which class it has.
var claimAnnotations = []string{
	wellknown.AnnStorageProvisioner, wellknown.AnnBetaStorageProvisioner, wellknown.AnnMigratedTo, wellknown.AnnBetaStorageClass,
}

// TrimClaim keeps the claims that wait for a volume of the driver as they are: templates may ask for any
// label or annotation of theirs. Of all others it keeps what they are bound to, made from and protected by.
func TrimClaim(driver string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		TrimApplied(c)
		if c.Spec.VolumeName == "" && speaksOf(c, driver, claimAnnotations[:3]) {
			return
		}
		trimMeta(&c.ObjectMeta, claimAnnotations)
		c.Spec = corev1.PersistentVolumeClaimSpec{
			VolumeName: c.Spec.VolumeName, StorageClassName: c.Spec.StorageClassName, VolumeMode: c.Spec.VolumeMode,
			DataSource: c.Spec.DataSource, DataSourceRef: c.Spec.DataSourceRef, Resources: requestedStorage(c),
		}
		c.Status = corev1.PersistentVolumeClaimStatus{Phase: c.Status.Phase}
	}
}

// requestedStorage is what a clone may not ask less than.
func requestedStorage(c *corev1.PersistentVolumeClaim) corev1.VolumeResourceRequirements {
	size, ok := c.Spec.Resources.Requests[corev1.ResourceStorage]
	if !ok {
		return corev1.VolumeResourceRequirements{}
	}
	return corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size}}
}

// volumeAnnotations say of any volume whose it is; deletionAnnotations what its end takes.
var (
	volumeAnnotations   = []string{wellknown.AnnProvisionedBy, wellknown.AnnMigratedTo}
	deletionAnnotations = append(slices.Clone(volumeAnnotations),
		wellknown.AnnBetaStorageClass, wellknown.AnnDeletionSecretName, wellknown.AnnDeletionSecretNamespace)
)

// TrimVolume keeps of a volume what its end takes and where it can be reached, and of those of other drivers
// which handle they have for whom, in the form from before a driver too. Those of the driver in that form are translated as a whole.
func TrimVolume(driver string) func(*corev1.PersistentVolume) {
	return func(v *corev1.PersistentVolume) {
		TrimApplied(v)
		switch ours := speaksOf(v, driver, volumeAnnotations) || v.Spec.CSI != nil && v.Spec.CSI.Driver == driver; {
		case ours && v.Spec.CSI == nil:
			return
		case ours:
			trimMeta(&v.ObjectMeta, deletionAnnotations)
		default:
			trimMeta(&v.ObjectMeta, volumeAnnotations)
			v.Spec.NodeAffinity, v.Spec.StorageClassName = nil, ""
		}
		spec := corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: v.Spec.PersistentVolumeReclaimPolicy, StorageClassName: v.Spec.StorageClassName,
			NodeAffinity: v.Spec.NodeAffinity,
		}
		if source := v.Spec.CSI; source != nil {
			spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: source.Driver, VolumeHandle: source.VolumeHandle}
		} else if inTreeID(v) != "" {
			spec.PersistentVolumeSource = v.Spec.PersistentVolumeSource
		}
		if ref := v.Spec.ClaimRef; ref != nil {
			spec.ClaimRef = &corev1.ObjectReference{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID}
		}
		v.Spec, v.Status = spec, corev1.PersistentVolumeStatus{Phase: v.Status.Phase}
	}
}

// TrimNode keeps of a Node what the topology needs: its labels.
func TrimNode(node *corev1.Node) {
	TrimApplied(node)
	labels := node.Labels
	trimMeta(&node.ObjectMeta, nil)
	node.Labels, node.Spec, node.Status = labels, corev1.NodeSpec{}, corev1.NodeStatus{}
}

// TrimCSINode keeps the topology keys of the driver.
func TrimCSINode(driver string) func(*storagev1.CSINode) {
	return func(node *storagev1.CSINode) {
		TrimApplied(node)
		trimMeta(&node.ObjectMeta, nil)
		var kept []storagev1.CSINodeDriver
		for _, d := range node.Spec.Drivers {
			if d.Name == driver {
				kept = append(kept, storagev1.CSINodeDriver{Name: d.Name, NodeID: d.NodeID, TopologyKeys: d.TopologyKeys})
			}
		}
		node.Spec = storagev1.CSINodeSpec{Drivers: kept}
	}
}

// TrimAttachment keeps which volume is on which node.
func TrimAttachment(a *storagev1.VolumeAttachment) {
	TrimApplied(a)
	trimMeta(&a.ObjectMeta, nil)
	a.Spec = storagev1.VolumeAttachmentSpec{
		NodeName: a.Spec.NodeName, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: a.Spec.Source.PersistentVolumeName},
	}
	a.Status = storagev1.VolumeAttachmentStatus{}
}

// speaksOf tells whether one of the annotations names the driver.
func speaksOf(obj metav1.Object, driver string, annotations []string) bool {
	return driver != "" && slices.ContainsFunc(annotations, func(key string) bool { return obj.GetAnnotations()[key] == driver })
}

// trimMeta drops labels and owners, and the annotations apart from some.
func trimMeta(meta *metav1.ObjectMeta, annotations []string) {
	var kept map[string]string
	for _, key := range annotations {
		if value, ok := meta.Annotations[key]; ok {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		}
	}
	meta.Labels, meta.OwnerReferences, meta.Annotations = nil, nil, kept
}
