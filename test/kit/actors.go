// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

const (
	annBindCompleted     = "pv.kubernetes.io/bind-completed"
	annBoundByController = "pv.kubernetes.io/bound-by-controller"
)

// Binder plays the volume controller of Kubernetes: it hands claims to the driver of their class, binds
// claims to the volumes that name them, and releases volumes whose claim is gone.
func Binder(api *API) Room {
	look := func(change Change) []reconcile.Key {
		switch change.Resource.Plural {
		case "persistentvolumeclaims", "persistentvolumes", "storageclasses":
			return []reconcile.Key{{Name: "all"}}
		}
		return nil
	}
	return Room{Name: "binder", Keys: look, Reconcile: func(context.Context, reconcile.Key) (reconcile.Result, error) {
		for _, claim := range All[*corev1.PersistentVolumeClaim](api) {
			handOver(api, claim)
		}
		for _, volume := range All[*corev1.PersistentVolume](api) {
			bind(api, volume)
		}
		return reconcile.Result{}, nil
	}}
}

// handOver names the provisioner on a claim that waits for one.
func handOver(api *API, claim *corev1.PersistentVolumeClaim) {
	if claim.Spec.VolumeName != "" || claim.Spec.StorageClassName == nil || claim.DeletionTimestamp != nil {
		return
	}
	class, ok := Read[*storagev1.StorageClass](api, kube.Key{Name: *claim.Spec.StorageClassName})
	if !ok {
		return
	}
	if claim.Annotations[wellknown.AnnStorageProvisioner] == class.Provisioner {
		return
	}
	waits := class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
	if waits && claim.Annotations[wellknown.AnnSelectedNode] == "" {
		return
	}
	Edit(api, kube.KeyOf(claim), func(c *corev1.PersistentVolumeClaim) {
		kube.SetAnnotation(c, wellknown.AnnStorageProvisioner, class.Provisioner)
		kube.SetAnnotation(c, wellknown.AnnBetaStorageProvisioner, class.Provisioner)
	})
}

// bind joins a volume and the claim that it names, or releases it.
func bind(api *API, volume *corev1.PersistentVolume) {
	ref := volume.Spec.ClaimRef
	if ref == nil {
		return
	}
	key := kube.Key{Namespace: ref.Namespace, Name: ref.Name}
	claim, ok := Read[*corev1.PersistentVolumeClaim](api, key)
	if !ok || (ref.UID != "" && claim.UID != ref.UID) {
		if ref.UID != "" && volume.Status.Phase != corev1.VolumeReleased {
			Edit(api, kube.KeyOf(volume), func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeReleased })
		}
		return
	}
	isDone := claim.Status.Phase == corev1.ClaimBound && volume.Status.Phase == corev1.VolumeBound && ref.UID != ""
	if isDone || (claim.Spec.VolumeName != "" && claim.Spec.VolumeName != volume.Name) {
		return
	}
	Edit(api, kube.KeyOf(volume), func(v *corev1.PersistentVolume) {
		v.Spec.ClaimRef.UID, v.Status.Phase = claim.UID, corev1.VolumeBound
	})
	Edit(api, key, func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeName, c.Status.Phase = volume.Name, corev1.ClaimBound
		c.Status.Capacity, c.Status.AccessModes = volume.Spec.Capacity, volume.Spec.AccessModes
		kube.SetAnnotation(c, annBindCompleted, "yes")
		kube.SetAnnotation(c, annBoundByController, "yes")
	})
}
