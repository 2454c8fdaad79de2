// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"maps"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/params"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// template is the PersistentVolume of a claim as far as claim and class decide it. The finalizer is
// there from the start whatever the policy, so that no moment exists in which the volume could be
// forgotten.
func template(in ClaimInput, basics basics, secrets secretRefs) *corev1.PersistentVolume {
	source := &corev1.CSIPersistentVolumeSource{
		Driver:                     in.Driver,
		ReadOnly:                   in.PublishReadOnly && isReadOnly(basics.capabilities),
		VolumeAttributes:           map[string]string{wellknown.VolumeAttributeIdentity: in.Identity},
		ControllerPublishSecretRef: secrets[params.ControllerPublish],
		NodeStageSecretRef:         secrets[params.NodeStage],
		NodePublishSecretRef:       secrets[params.NodePublish],
		ControllerExpandSecretRef:  secrets[params.ControllerExpand],
		NodeExpandSecretRef:        secrets[params.NodeExpand],
	}
	if !in.isBlock() {
		source.FSType = basics.fsType
	}
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        basics.name,
			Annotations: annotationsOf(in, secrets),
			Finalizers:  []string{wellknown.FinalizerVolume},
		},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:            in.Claim.Spec.AccessModes,
			VolumeMode:             in.Claim.Spec.VolumeMode,
			MountOptions:           in.written.MountOptions,
			StorageClassName:       ClassName(in.Claim),
			ClaimRef:               claimRef(in.Claim),
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: source},
		},
	}
	if policy := in.written.ReclaimPolicy; policy != nil {
		volume.Spec.PersistentVolumeReclaimPolicy = *policy
	}
	// Claim and class belong to caches: what was taken from them is copied before anybody edits it.
	return volume.DeepCopy()
}

// annotationsOf records which secrets the volume was made with: the class may be gone or changed when
// the volume is deleted. Both deletion keys are always there, so that "none" is on record too.
func annotationsOf(in ClaimInput, secrets secretRefs) map[string]string {
	annotations := map[string]string{
		wellknown.AnnProvisionedBy:           in.written.Provisioner,
		wellknown.AnnDeletionSecretName:      "",
		wellknown.AnnDeletionSecretNamespace: "",
	}
	if ref := secrets[params.Provisioner]; ref != nil {
		annotations[wellknown.AnnDeletionSecretName] = ref.Name
		annotations[wellknown.AnnDeletionSecretNamespace] = ref.Namespace
	}
	if ref := secrets[params.ControllerModify]; ref != nil {
		annotations[wellknown.AnnModifySecretName] = ref.Name
		annotations[wellknown.AnnModifySecretNamespace] = ref.Namespace
	}
	return annotations
}

// BuildVolume completes the PersistentVolume of an attempt with what the driver answered. It fails for a
// volume of which too much is said, and for one that cannot be told in the form from before its migration.
func BuildVolume(attempt *Attempt, made *csi.Volume) (*corev1.PersistentVolume, error) {
	if err := checkSize(made); err != nil {
		return nil, err
	}
	volume := attempt.Volume.DeepCopy()
	size := made.GetCapacityBytes()
	if size == 0 {
		// The CSI spec lets a driver leave the size out.
		size = attempt.Request.GetCapacityRange().GetRequiredBytes()
	}
	volume.Spec.Capacity = corev1.ResourceList{
		corev1.ResourceStorage: *resource.NewQuantity(size, resource.BinarySI),
	}
	volume.Spec.CSI.VolumeHandle = made.GetVolumeId()
	// The driver's value wins where both have one.
	maps.Copy(volume.Spec.CSI.VolumeAttributes, made.GetVolumeContext())
	if attempt.Topology {
		volume.Spec.NodeAffinity = topology.Affinity(made.GetAccessibleTopology())
	}
	return storedForm(attempt, volume)
}
