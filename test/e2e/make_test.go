// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const snapshotGroup = "snapshot.storage.k8s.io"

func (w *world) cluster(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: w.ns + "-" + name, Labels: map[string]string{"e2e": w.ns}}
}

// class makes a class with Immediate binding; its full name is returned.
func (w *world) class(name string, edit ...func(*storagev1.StorageClass)) string {
	w.Helper()
	c := &storagev1.StorageClass{
		ObjectMeta: w.cluster(name), Provisioner: w.driver,
		ReclaimPolicy: ptr.To(corev1.PersistentVolumeReclaimDelete), VolumeBindingMode: ptr.To(storagev1.VolumeBindingImmediate),
	}
	for _, e := range edit {
		e(c)
	}
	w.must(w.kube.StorageV1().StorageClasses().Create(w.ctx, c, metav1.CreateOptions{}))
	return c.Name
}

func waiting(c *storagev1.StorageClass) {
	c.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
}

func retained(c *storagev1.StorageClass) {
	c.ReclaimPolicy = ptr.To(corev1.PersistentVolumeReclaimRetain)
}

// allowing limits a class to zones.
func allowing(values ...string) func(*storagev1.StorageClass) {
	return func(c *storagev1.StorageClass) {
		c.AllowedTopologies = []corev1.TopologySelectorTerm{{
			MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: zoneKey, Values: values}},
		}}
	}
}

func parameters(pairs map[string]string) func(*storagev1.StorageClass) {
	return func(c *storagev1.StorageClass) { c.Parameters = pairs }
}

// claim asks for 1Gi.
func (w *world) claim(name, class string, edit ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	w.Helper()
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To(class), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	for _, e := range edit {
		e(c)
	}
	made, err := w.kube.CoreV1().PersistentVolumeClaims(w.ns).Create(w.ctx, c, metav1.CreateOptions{})
	w.mustNot(err)
	return made
}

func fromSnapshot(name string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ptr.To(snapshotGroup), Kind: "VolumeSnapshot", Name: name}
	}
}

func fromClaim(name string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: name}
	}
}

func sized(size string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
	}
}

// pod uses a claim; the node is chosen by the scheduler, and is this one if it is named.
func (w *world) pod(name, claim, node string, edit ...func(*corev1.Pod)) {
	w.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "app", Image: "registry.k8s.io/pause:3.10",
				VolumeMounts: []corev1.VolumeMount{{Name: "disk", MountPath: "/data"}},
			}},
			Volumes: []corev1.Volume{{Name: "disk", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			}}},
		},
	}
	if node != "" {
		p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	}
	for _, e := range edit {
		e(p)
	}
	w.must(w.kube.CoreV1().Pods(w.ns).Create(w.ctx, p, metav1.CreateOptions{}))
}

// snapshotClass makes a class with policy Delete; its full name is returned.
func (w *world) snapshotClass(name string, edit ...func(*snapv1.VolumeSnapshotClass)) string {
	w.Helper()
	c := &snapv1.VolumeSnapshotClass{ObjectMeta: w.cluster(name), Driver: w.driver, DeletionPolicy: snapv1.VolumeSnapshotContentDelete}
	for _, e := range edit {
		e(c)
	}
	w.must(w.snaps.VolumeSnapshotClasses().Create(w.ctx, c, metav1.CreateOptions{}))
	return c.Name
}

func keeping(c *snapv1.VolumeSnapshotClass) { c.DeletionPolicy = snapv1.VolumeSnapshotContentRetain }

// snapshot cuts a claim; an empty class leaves the choice to the default.
func (w *world) snapshot(name, claim, class string) *snapv1.VolumeSnapshot {
	w.Helper()
	v := &snapv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       snapv1.VolumeSnapshotSpec{Source: snapv1.VolumeSnapshotSource{PersistentVolumeClaimName: ptr.To(claim)}},
	}
	if class != "" {
		v.Spec.VolumeSnapshotClassName = ptr.To(class)
	}
	made, err := w.snaps.VolumeSnapshots(w.ns).Create(w.ctx, v, metav1.CreateOptions{})
	w.mustNot(err)
	return made
}

// given makes a snapshot that names a content.
func (w *world) given(name, content string) *snapv1.VolumeSnapshot {
	w.Helper()
	v := &snapv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       snapv1.VolumeSnapshotSpec{Source: snapv1.VolumeSnapshotSource{VolumeSnapshotContentName: ptr.To(content)}},
	}
	made, err := w.snaps.VolumeSnapshots(w.ns).Create(w.ctx, v, metav1.CreateOptions{})
	w.mustNot(err)
	return made
}

// content writes down a snapshot that the driver has, for the VolumeSnapshot of that name; its full name is returned.
// Its policy is Delete.
func (w *world) content(name, handle, snapshot string, edit ...func(*snapv1.VolumeSnapshotContent)) string {
	w.Helper()
	c := &snapv1.VolumeSnapshotContent{
		ObjectMeta: w.cluster(name),
		Spec: snapv1.VolumeSnapshotContentSpec{
			Driver: w.driver, DeletionPolicy: snapv1.VolumeSnapshotContentDelete,
			Source:            snapv1.VolumeSnapshotContentSource{SnapshotHandle: ptr.To(handle)},
			VolumeSnapshotRef: corev1.ObjectReference{Kind: "VolumeSnapshot", Namespace: w.ns, Name: snapshot},
		},
	}
	for _, e := range edit {
		e(c)
	}
	w.must(w.snaps.VolumeSnapshotContents().Create(w.ctx, c, metav1.CreateOptions{}))
	return c.Name
}

func (w *world) secret(name string, values map[string]string) {
	w.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: values}
	w.must(w.kube.CoreV1().Secrets(w.ns).Create(w.ctx, s, metav1.CreateOptions{}))
}
