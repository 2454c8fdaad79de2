// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// past is what the incumbents have left behind. They are not at hand here: objects are made as theirs are, field by field, and all
// strings are written out.
type past struct {
	*world
	controller           csi.ControllerClient
	class, snapshotClass string
}

func newPast(w *world) *past {
	w.Helper()
	connection, err := grpc.NewClient("unix://"+w.cast.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	w.mustNot(err)
	w.Cleanup(func() { w.mustNot(connection.Close()) })
	w.secret("credentials", map[string]string{"token": "a"})
	return &past{
		world: w, controller: csi.NewControllerClient(connection),
		class: w.class("class", parameters(map[string]string{
			"csi.storage.k8s.io/provisioner-secret-name": "credentials", "csi.storage.k8s.io/provisioner-secret-namespace": w.ns,
		})),
		snapshotClass: w.snapshotClass("delete", func(c *snapv1.VolumeSnapshotClass) {
			c.Parameters = map[string]string{
				"csi.storage.k8s.io/snapshotter-secret-name": "credentials", "csi.storage.k8s.io/snapshotter-secret-namespace": w.ns,
			}
		}),
	}
}

// ask is CreateVolume as csi-provisioner asks with --extra-create-metadata and --default-fstype=ext4.
func (p *past) ask(claim *corev1.PersistentVolumeClaim) string {
	p.Helper()
	name := "pvc-" + string(claim.UID)
	answer, err := p.controller.CreateVolume(p.ctx, &csi.CreateVolumeRequest{
		Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 30}, Secrets: map[string]string{"token": "a"},
		Parameters: map[string]string{
			"csi.storage.k8s.io/pvc/name": claim.Name, "csi.storage.k8s.io/pvc/namespace": claim.Namespace, "csi.storage.k8s.io/pv/name": name,
		},
		VolumeCapabilities: []*csi.VolumeCapability{{
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: "ext4"}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER},
		}},
	})
	p.mustNot(err)
	return answer.Volume.VolumeId
}

// volume is a bound claim with its volume.
func (p *past) volume(name string, edit ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolume {
	p.Helper()
	claim := p.claim(name, p.class, edit...)
	handle := p.ask(claim)
	p.must(p.kube.CoreV1().PersistentVolumes().Create(p.ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: "pvc-" + string(claim.UID),
			Annotations: map[string]string{
				"pv.kubernetes.io/provisioned-by":                            p.driver,
				"volume.kubernetes.io/provisioner-deletion-secret-name":      "credentials",
				"volume.kubernetes.io/provisioner-deletion-secret-namespace": p.ns,
			},
			Finalizers: []string{"external-provisioner.volume.kubernetes.io/finalizer"},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes: claim.Spec.AccessModes, VolumeMode: claim.Spec.VolumeMode, StorageClassName: p.class,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			ClaimRef: &corev1.ObjectReference{
				Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: p.ns, Name: name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: p.driver, VolumeHandle: handle, FSType: "ext4",
				VolumeAttributes: map[string]string{"storage.kubernetes.io/csiProvisionerIdentity": "1732000000000-81-" + p.driver},
			}},
		},
	}, metav1.CreateOptions{}))
	return p.bound(name)
}

// cut is CreateSnapshot as csi-snapshotter asks.
func (p *past) cut(s *snapv1.VolumeSnapshot, volume *corev1.PersistentVolume) string {
	p.Helper()
	id, err := p.cast.MakeSnapshot(p.ctx, "snapshot-"+string(s.UID), volume.Spec.CSI.VolumeHandle)
	p.mustNot(err)
	return id
}

// marks of a VolumeSnapshot and of a content, as the incumbents write them.
const (
	beingCreated = "snapshot.storage.kubernetes.io/volumesnapshot-being-created"
	beingDeleted = "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted"
)

// snap is a VolumeSnapshot of the claim with these finalizers, and whatever status it has come to.
func (p *past) snap(name, claim string, status *snapv1.VolumeSnapshotStatus, finalizers ...string) *snapv1.VolumeSnapshot {
	p.Helper()
	s, err := p.snaps.VolumeSnapshots(p.ns).Create(p.ctx, &snapv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers},
		Spec: snapv1.VolumeSnapshotSpec{
			VolumeSnapshotClassName: ptr.To(p.snapshotClass), Source: snapv1.VolumeSnapshotSource{PersistentVolumeClaimName: ptr.To(claim)},
		},
	}, metav1.CreateOptions{})
	p.mustNot(err)
	if status == nil {
		return s
	}
	status.BoundVolumeSnapshotContentName = ptr.To("snapcontent-" + string(s.UID))
	s.Status = status
	s, err = p.snaps.VolumeSnapshots(p.ns).UpdateStatus(p.ctx, s, metav1.UpdateOptions{})
	p.mustNot(err)
	return s
}

// of is the content of a VolumeSnapshot. An empty handle leaves it without a status.
func (p *past) of(s *snapv1.VolumeSnapshot, volume *corev1.PersistentVolume, handle string, marks ...string) *snapv1.VolumeSnapshotContent {
	p.Helper()
	c := &snapv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{
			Name: "snapcontent-" + string(s.UID), Labels: map[string]string{"e2e": p.ns},
			Annotations: map[string]string{
				"snapshot.storage.kubernetes.io/deletion-secret-name":      "credentials",
				"snapshot.storage.kubernetes.io/deletion-secret-namespace": p.ns,
			},
			Finalizers: []string{"snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"},
		},
		Spec: snapv1.VolumeSnapshotContentSpec{
			VolumeSnapshotRef: corev1.ObjectReference{
				Kind: "VolumeSnapshot", APIVersion: "snapshot.storage.k8s.io/v1", Namespace: p.ns, Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion,
			},
			Source: snapv1.VolumeSnapshotContentSource{VolumeHandle: ptr.To(volume.Spec.CSI.VolumeHandle)}, SourceVolumeMode: volume.Spec.VolumeMode,
			VolumeSnapshotClassName: ptr.To(p.snapshotClass), DeletionPolicy: snapv1.VolumeSnapshotContentDelete, Driver: p.driver,
		},
	}
	for _, mark := range marks {
		c.Annotations[mark] = "yes"
	}
	c, err := p.snaps.VolumeSnapshotContents().Create(p.ctx, c, metav1.CreateOptions{})
	p.mustNot(err)
	switch {
	case handle != "":
		c.Status = &snapv1.VolumeSnapshotContentStatus{
			SnapshotHandle: ptr.To(handle), ReadyToUse: ptr.To(true), RestoreSize: ptr.To(int64(1 << 30)), CreationTime: ptr.To(time.Now().UnixNano()),
		}
	case slices.Contains(marks, beingDeleted):
		// csi-snapshotter has deleted it at the driver, and takes all that said that it was there out of the status, which stays.
		c.Status = &snapv1.VolumeSnapshotContentStatus{}
	default:
		return c
	}
	c, err = p.snaps.VolumeSnapshotContents().UpdateStatus(p.ctx, c, metav1.UpdateOptions{})
	p.mustNot(err)
	return c
}

// isReady is the status of a VolumeSnapshot that can be used.
func isReady() *snapv1.VolumeSnapshotStatus {
	return &snapv1.VolumeSnapshotStatus{
		ReadyToUse: ptr.To(true), RestoreSize: resource.NewQuantity(1<<30, resource.BinarySI), CreationTime: ptr.To(metav1.Now()),
	}
}

func isBegun() *snapv1.VolumeSnapshotStatus {
	return &snapv1.VolumeSnapshotStatus{ReadyToUse: ptr.To(false)}
}
