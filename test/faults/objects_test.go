// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const snapshotGroup = "snapshot.storage.k8s.io"

// secretName is that of the secret that the driver is to be told with every call that changes something.
const secretName = "keys"

// makeClasses makes one class of each kind, and the secret that both name.
func (c *crew) makeClasses(ctx context.Context) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secretName}, StringData: map[string]string{"token": canary}}
	if _, err := c.kube.CoreV1().Secrets(c.ns).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return err
	}
	class := &storagev1.StorageClass{
		ObjectMeta: c.cluster("class"), Provisioner: c.driver,
		ReclaimPolicy: ptr.To(corev1.PersistentVolumeReclaimDelete), VolumeBindingMode: ptr.To(storagev1.VolumeBindingImmediate),
		Parameters: map[string]string{
			"csi.storage.k8s.io/provisioner-secret-name":      secretName,
			"csi.storage.k8s.io/provisioner-secret-namespace": "${pvc.namespace}",
		},
	}
	if _, err := c.kube.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		return err
	}
	snapshotClass := &snapv1.VolumeSnapshotClass{
		ObjectMeta: c.cluster("class"), Driver: c.driver, DeletionPolicy: snapv1.VolumeSnapshotContentDelete,
		Parameters: map[string]string{
			"csi.storage.k8s.io/snapshotter-secret-name":           secretName,
			"csi.storage.k8s.io/snapshotter-secret-namespace":      "${volumesnapshot.namespace}",
			"csi.storage.k8s.io/snapshotter-list-secret-name":      secretName,
			"csi.storage.k8s.io/snapshotter-list-secret-namespace": c.ns,
		},
	}
	_, err := c.snaps.VolumeSnapshotClasses().Create(ctx, snapshotClass, metav1.CreateOptions{})
	return err
}

// cluster names what is in no namespace.
func (c *crew) cluster(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: c.ns + "-" + name}
}

// makeClaim asks for 1Gi, filled from a source if one is given.
func (c *crew) makeClaim(ctx context.Context, name string, source *corev1.TypedLocalObjectReference) error {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To(c.cluster("class").Name), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:  corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			DataSource: source,
		},
	}
	made, err := c.kube.CoreV1().PersistentVolumeClaims(c.ns).Create(ctx, claim, metav1.CreateOptions{})
	if err == nil && c.born != nil {
		c.born(name, made.UID)
	}
	return err
}

func fromSnapshot(name string) *corev1.TypedLocalObjectReference {
	return &corev1.TypedLocalObjectReference{APIGroup: ptr.To(snapshotGroup), Kind: "VolumeSnapshot", Name: name}
}

func fromClaim(name string) *corev1.TypedLocalObjectReference {
	return &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: name}
}

// makeSnapshot cuts a claim.
func (c *crew) makeSnapshot(ctx context.Context, name, claim string) error {
	snapshot := &snapv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: snapv1.VolumeSnapshotSpec{
			VolumeSnapshotClassName: ptr.To(c.cluster("class").Name), Source: snapv1.VolumeSnapshotSource{PersistentVolumeClaimName: ptr.To(claim)},
		},
	}
	return c.postSnapshot(ctx, snapshot)
}

// importSnapshot writes down a snapshot that the driver has: a content and the snapshot that is bound to it.
func (c *crew) importSnapshot(ctx context.Context, name, handle string) error {
	content := &snapv1.VolumeSnapshotContent{
		ObjectMeta: c.cluster(name),
		Spec: snapv1.VolumeSnapshotContentSpec{
			Driver: c.driver, DeletionPolicy: snapv1.VolumeSnapshotContentDelete,
			Source:            snapv1.VolumeSnapshotContentSource{SnapshotHandle: ptr.To(handle)},
			VolumeSnapshotRef: corev1.ObjectReference{Kind: "VolumeSnapshot", Namespace: c.ns, Name: name},
		},
	}
	if _, err := c.snaps.VolumeSnapshotContents().Create(ctx, content, metav1.CreateOptions{}); err != nil {
		return err
	}
	snapshot := &snapv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       snapv1.VolumeSnapshotSpec{Source: snapv1.VolumeSnapshotSource{VolumeSnapshotContentName: ptr.To(content.Name)}},
	}
	return c.postSnapshot(ctx, snapshot)
}

func (c *crew) postSnapshot(ctx context.Context, snapshot *snapv1.VolumeSnapshot) error {
	made, err := c.snaps.VolumeSnapshots(c.ns).Create(ctx, snapshot, metav1.CreateOptions{})
	if err == nil && c.born != nil {
		c.born(made.Name, made.UID)
	}
	return err
}

func (c *crew) deleteClaim(ctx context.Context, name string) error {
	return unlessGone(c.kube.CoreV1().PersistentVolumeClaims(c.ns).Delete(ctx, name, metav1.DeleteOptions{}))
}

func (c *crew) deleteSnapshot(ctx context.Context, name string) error {
	return unlessGone(c.snaps.VolumeSnapshots(c.ns).Delete(ctx, name, metav1.DeleteOptions{}))
}

// deleteImport deletes both objects: a content that was never bound to its snapshot would not go with it. One that nobody has
// protected yet is gone without a trace, and whoever deletes it so has to delete by hand what is at the driver.
func (c *crew) deleteImport(ctx context.Context, name string) error {
	if err := c.deleteSnapshot(ctx, name); err != nil {
		return err
	}
	contents := c.snaps.VolumeSnapshotContents()
	content, err := contents.Get(ctx, c.cluster(name).Name, metav1.GetOptions{})
	if err != nil {
		return unlessGone(err)
	}
	if err := unlessGone(contents.Delete(ctx, content.Name, metav1.DeleteOptions{})); err != nil || len(content.Finalizers) > 0 {
		return err
	}
	_, err = contents.Get(ctx, content.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if c.byHand != nil {
			c.byHand(name)
			return nil
		}
		return c.script.Forget(ctx, name)
	}
	return err
}

func unlessGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
