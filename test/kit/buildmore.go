// SPDX-License-Identifier: Apache-2.0

package kit

import (
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Content is the content that is made for a snapshot of a volume, under the name that follows from the
// snapshot's UID; nothing has happened at the driver yet.
func Content(snapshot *snapv1.VolumeSnapshot, volumeHandle string, mods ...func(*kube.Content)) *kube.Content {
	content := NamedContent(wellknown.ContentName(string(snapshot.UID)))
	content.Spec.Source = snapv1.VolumeSnapshotContentSource{VolumeHandle: Ptr(volumeHandle)}
	content.Spec.VolumeSnapshotRef = corev1.ObjectReference{
		Kind: wellknown.KindVolumeSnapshot, APIVersion: snapv1.SchemeGroupVersion.String(),
		Namespace: snapshot.Namespace, Name: snapshot.Name, UID: snapshot.UID, ResourceVersion: snapshot.ResourceVersion,
	}
	return apply(content, mods)
}

// NamedContent is a content that an administrator made for a snapshot that exists at the driver already:
// it names the VolumeSnapshot "data-snapshot", without UID.
func NamedContent(name string, mods ...func(*kube.Content)) *kube.Content {
	content := &kube.Content{}
	content.ObjectMeta = meta[*kube.Content](name)
	content.Spec = snapv1.VolumeSnapshotContentSpec{
		Driver: DriverName, DeletionPolicy: snapv1.VolumeSnapshotContentDelete,
		VolumeSnapshotClassName: Ptr(SnapshotClassName),
		Source:                  snapv1.VolumeSnapshotContentSource{SnapshotHandle: Ptr(SnapshotHandle(name))},
		VolumeSnapshotRef: corev1.ObjectReference{
			Kind: wellknown.KindVolumeSnapshot, APIVersion: snapv1.SchemeGroupVersion.String(),
			Namespace: Namespace, Name: "data-snapshot",
		},
	}
	return apply(content, mods)
}

// Taken gives a content the status of a snapshot that exists at the driver and is ready.
func Taken(handle string) func(*kube.Content) {
	return func(c *kube.Content) {
		c.Status = &snapv1.VolumeSnapshotContentStatus{
			SnapshotHandle: Ptr(handle), ReadyToUse: Ptr(true),
			CreationTime: Ptr(Start.UnixNano()), RestoreSize: Ptr(int64(defaultSize)),
		}
	}
}

// Node is a node with labels.
func Node(name string, labels map[string]string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: meta[*corev1.Node](name)}
	node.Labels = labels
	return node
}

// CSINode says that the driver runs on a node and reports these topology keys.
func CSINode(node string, keys ...string) *storagev1.CSINode {
	return &storagev1.CSINode{
		ObjectMeta: meta[*storagev1.CSINode](node),
		Spec: storagev1.CSINodeSpec{
			Drivers: []storagev1.CSINodeDriver{{Name: DriverName, NodeID: node, TopologyKeys: keys}},
		},
	}
}

// Secret is a secret in Namespace.
func Secret(name string, data map[string]string) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: meta[*corev1.Secret](name), Data: map[string][]byte{}}
	for k, v := range data {
		secret.Data[k] = []byte(v)
	}
	return secret
}

// Attachment attaches a volume to a node.
func Attachment(name, volume, node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: meta[*storagev1.VolumeAttachment](name),
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: DriverName, NodeName: node,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: Ptr(volume)},
		},
		Status: storagev1.VolumeAttachmentStatus{Attached: true},
	}
}
