// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Names that builders give when nobody gives others.
const (
	ClassName         = "fast"
	SnapshotClassName = "snap"
)

// Start is when a harness's clock starts, and when built objects were created.
var Start = time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)

// Ptr is a pointer to a copy.
func Ptr[T any](value T) *T { return &value }

// With applies modifiers that fit every kind.
func With[T kube.Object](obj T, mods ...func(metav1.Object)) T {
	for _, mod := range mods {
		mod(obj)
	}
	return obj
}

// Annotation sets an annotation.
func Annotation(key, value string) func(metav1.Object) {
	return func(obj metav1.Object) { kube.SetAnnotation(obj, key, value) }
}

// Finalizers adds finalizers.
func Finalizers(names ...string) func(metav1.Object) {
	return func(obj metav1.Object) { kube.AddFinalizer(obj, names...) }
}

// Labels sets labels.
func Labels(labels map[string]string) func(metav1.Object) {
	return func(obj metav1.Object) { obj.SetLabels(labels) }
}

// Deleted marks the object as being deleted since Start. The API server keeps such objects only while
// they have finalizers.
func Deleted(obj metav1.Object) {
	at := metav1.NewTime(Start)
	obj.SetDeletionTimestamp(&at)
}

func meta[T kube.Object](name string) metav1.ObjectMeta {
	r := kube.ResourceOf[T]()
	m := metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(Start)}
	if r.Namespaced {
		m.Namespace = Namespace
	}
	m.UID = UIDOf(r.Plural, m.Namespace, name, 0)
	return m
}

func apply[T any](obj T, mods []func(T)) T {
	for _, mod := range mods {
		mod(obj)
	}
	return obj
}

// Claim is a pending claim of 1 GiB of the class ClassName, handed to the driver by Kubernetes.
func Claim(name string, mods ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: meta[*corev1.PersistentVolumeClaim](name),
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: Ptr(ClassName),
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			VolumeMode:       Ptr(corev1.PersistentVolumeFilesystem),
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}
	claim.Annotations = map[string]string{
		wellknown.AnnStorageProvisioner: DriverName, wellknown.AnnBetaStorageProvisioner: DriverName,
	}
	return apply(claim, mods)
}

// Size sets what a claim asks for.
func Size(quantity string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(quantity)
	}
}

// FromSnapshot makes a claim a restore of a snapshot in its namespace, as the API server fills it in.
func FromSnapshot(name string) func(*corev1.PersistentVolumeClaim) {
	return from(Ptr(wellknown.SnapshotGroup), wellknown.KindVolumeSnapshot, name)
}

// FromClaim makes a claim a clone of another in its namespace.
func FromClaim(name string) func(*corev1.PersistentVolumeClaim) {
	return from(nil, wellknown.KindPersistentVolumeClaim, name)
}

func from(group *string, kind, name string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: group, Kind: kind, Name: name}
		c.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: group, Kind: kind, Name: name}
	}
}

// OnNode is what the scheduler writes on a claim whose class waits for a consumer.
func OnNode(node string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { kube.SetAnnotation(c, wellknown.AnnSelectedNode, node) }
}

// BoundTo is a claim that is bound to a volume.
func BoundTo(volume string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeName, c.Status.Phase = volume, corev1.ClaimBound
		c.Status.Capacity = c.Spec.Resources.Requests.DeepCopy()
		c.Status.AccessModes = c.Spec.AccessModes
		kube.SetAnnotation(c, annBindCompleted, "yes")
	}
}

// Volume is an available PersistentVolume of the driver: 1 GiB, reclaim policy Delete.
func Volume(name string, mods ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{
		ObjectMeta: meta[*corev1.PersistentVolume](name),
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			StorageClassName:              ClassName,
			VolumeMode:                    Ptr(corev1.PersistentVolumeFilesystem),
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: DriverName, VolumeHandle: VolumeHandle(name)},
			},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable},
	}
	volume.Annotations = map[string]string{wellknown.AnnProvisionedBy: DriverName}
	return apply(volume, mods)
}

// ClaimedBy binds a volume to a claim.
func ClaimedBy(claim *corev1.PersistentVolumeClaim) func(*corev1.PersistentVolume) {
	return func(v *corev1.PersistentVolume) {
		v.Spec.ClaimRef = &corev1.ObjectReference{
			Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
		}
		v.Status.Phase = corev1.VolumeBound
	}
}

// Released is a volume whose claim is gone.
func Released(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeReleased }

// Class is a StorageClass of the driver that binds at once.
func Class(name string, mods ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	return apply(&storagev1.StorageClass{
		ObjectMeta:  meta[*storagev1.StorageClass](name),
		Provisioner: DriverName, Parameters: map[string]string{},
		ReclaimPolicy:     Ptr(corev1.PersistentVolumeReclaimDelete),
		VolumeBindingMode: Ptr(storagev1.VolumeBindingImmediate),
	}, mods)
}

// WaitForConsumer makes a class wait until the scheduler has chosen a node.
func WaitForConsumer(c *storagev1.StorageClass) {
	c.VolumeBindingMode = Ptr(storagev1.VolumeBindingWaitForFirstConsumer)
}

// SnapshotClass is a VolumeSnapshotClass of the driver with the deletion policy Delete.
func SnapshotClass(name string, mods ...func(*snapv1.VolumeSnapshotClass)) *snapv1.VolumeSnapshotClass {
	return apply(&snapv1.VolumeSnapshotClass{
		ObjectMeta: meta[*snapv1.VolumeSnapshotClass](name),
		Driver:     DriverName, DeletionPolicy: snapv1.VolumeSnapshotContentDelete,
	}, mods)
}

// Snapshot is a new VolumeSnapshot of a claim, of the class SnapshotClassName.
func Snapshot(name, claim string, mods ...func(*snapv1.VolumeSnapshot)) *snapv1.VolumeSnapshot {
	return apply(&snapv1.VolumeSnapshot{
		ObjectMeta: meta[*snapv1.VolumeSnapshot](name),
		Spec: snapv1.VolumeSnapshotSpec{
			Source:                  snapv1.VolumeSnapshotSource{PersistentVolumeClaimName: Ptr(claim)},
			VolumeSnapshotClassName: Ptr(SnapshotClassName),
		},
	}, mods)
}

// FromContent makes a snapshot one that binds to an existing content instead of taking a new one.
func FromContent(content string) func(*snapv1.VolumeSnapshot) {
	return func(s *snapv1.VolumeSnapshot) {
		s.Spec.Source = snapv1.VolumeSnapshotSource{VolumeSnapshotContentName: Ptr(content)}
		s.Spec.VolumeSnapshotClassName = nil
	}
}

// BoundContent gives a snapshot the status of one that is bound and ready.
func BoundContent(content string) func(*snapv1.VolumeSnapshot) {
	return func(s *snapv1.VolumeSnapshot) {
		s.Status = &snapv1.VolumeSnapshotStatus{
			BoundVolumeSnapshotContentName: Ptr(content), ReadyToUse: Ptr(true),
			CreationTime: Ptr(metav1.NewTime(Start)), RestoreSize: resource.NewQuantity(defaultSize, resource.BinarySI),
		}
	}
}
