// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Names of the indexes that the stores have.
const (
	BySnapshotSource = "snapshotSource"
	ByForeignSource  = "foreignSource"
	ByNamespace      = "namespace"
	ByClaimSource    = "claimSource"
	ByVolume         = "volume"
	ByStorageClass   = "storageClass"
	ByHandle         = "handle"
	ByClaim          = "claim"
	ByContent        = "content"
	BySnapshot       = "snapshot"
	BySnapshotClass  = "snapshotClass"
	BySegment        = "segment"
	BySlot           = "slot"
	ByNode           = "node"
	ByInTree         = "inTree"
)

// ClaimIndexes are the ways to find claims.
func ClaimIndexes() map[string]Index[*corev1.PersistentVolumeClaim] {
	return map[string]Index[*corev1.PersistentVolumeClaim]{
		BySnapshotSource: func(c *corev1.PersistentVolumeClaim) []string {
			return sourcesOf(c, wellknown.KindVolumeSnapshot)
		},
		ByClaimSource: func(c *corev1.PersistentVolumeClaim) []string {
			return sourcesOf(c, wellknown.KindPersistentVolumeClaim)
		},
		ByForeignSource: func(c *corev1.PersistentVolumeClaim) []string {
			if s := c.Spec.DataSourceRef; s != nil && s.Namespace != nil && *s.Namespace != c.Namespace {
				return present(*s.Namespace)
			}
			return nil
		},
		ByVolume: func(c *corev1.PersistentVolumeClaim) []string { return present(c.Spec.VolumeName) },
		ByNode: func(c *corev1.PersistentVolumeClaim) []string {
			if c.Spec.VolumeName != "" {
				return nil // only those that wait are looked for
			}
			return present(c.Annotations[wellknown.AnnSelectedNode])
		},
		ByStorageClass: func(c *corev1.PersistentVolumeClaim) []string {
			if name, ok := c.Annotations[wellknown.AnnBetaStorageClass]; ok {
				return present(name)
			}
			if c.Spec.StorageClassName == nil {
				return nil
			}
			return present(*c.Spec.StorageClassName)
		},
	}
}

// sourcesOf lists what a claim is made from, by both fields that can say so; usually they agree.
func sourcesOf(c *corev1.PersistentVolumeClaim, kind string) []string {
	var found []string
	if s := c.Spec.DataSource; s != nil && s.Kind == kind && s.Name != "" {
		found = append(found, keyString(Key{Namespace: c.Namespace, Name: s.Name}))
	}
	if s := c.Spec.DataSourceRef; s != nil && s.Kind == kind && s.Name != "" {
		key := Key{Namespace: c.Namespace, Name: s.Name}
		if s.Namespace != nil && *s.Namespace != "" {
			key.Namespace = *s.Namespace
		}
		if len(found) == 0 || found[0] != keyString(key) {
			found = append(found, keyString(key))
		}
	}
	return found
}

// VolumeIndexes are the ways to find PersistentVolumes.
func VolumeIndexes() map[string]Index[*corev1.PersistentVolume] {
	return map[string]Index[*corev1.PersistentVolume]{
		ByHandle: func(v *corev1.PersistentVolume) []string {
			if v.Spec.CSI == nil {
				return nil
			}
			return []string{HandleKey(v.Spec.CSI.Driver, v.Spec.CSI.VolumeHandle)}
		},
		ByInTree: func(v *corev1.PersistentVolume) []string { return present(inTreeID(v)) },
	}
}

// HandleKey is the value of ByHandle for a volume of a driver.
func HandleKey(driver, handle string) string { return driver + "^" + handle }

// IndexValue is the value under which an index over references finds a key.
func IndexValue(key Key) string { return keyString(key) }

// AttachmentIndexes are the ways to find VolumeAttachments.
func AttachmentIndexes() map[string]Index[*storagev1.VolumeAttachment] {
	return map[string]Index[*storagev1.VolumeAttachment]{
		ByVolume: func(a *storagev1.VolumeAttachment) []string {
			if a.Spec.Source.PersistentVolumeName == nil {
				return nil
			}
			return present(*a.Spec.Source.PersistentVolumeName)
		},
	}
}

// GrantIndexes are the ways to find ReferenceGrants.
func GrantIndexes() map[string]Index[*ReferenceGrant] {
	return map[string]Index[*ReferenceGrant]{
		ByNamespace: func(g *ReferenceGrant) []string { return []string{g.Namespace} },
	}
}

// SnapshotIndexes are the ways to find VolumeSnapshots.
func SnapshotIndexes() map[string]Index[*snapv1.VolumeSnapshot] {
	return map[string]Index[*snapv1.VolumeSnapshot]{
		ByClaim: func(s *snapv1.VolumeSnapshot) []string {
			name := s.Spec.Source.PersistentVolumeClaimName
			if name == nil || *name == "" {
				return nil
			}
			return []string{keyString(Key{Namespace: s.Namespace, Name: *name})}
		},
		ByContent: contentsOf,
		BySnapshotClass: func(s *snapv1.VolumeSnapshot) []string {
			if s.Spec.VolumeSnapshotClassName == nil {
				// Those that wait for a default class are found under the empty name.
				return []string{""}
			}
			return []string{*s.Spec.VolumeSnapshotClassName}
		},
	}
}

// contentsOf lists the contents that a snapshot names, and the one that is made for it, which its status does
// not name at first.
func contentsOf(s *snapv1.VolumeSnapshot) []string {
	var names []string
	add := func(name *string) {
		if name != nil && *name != "" && !slices.Contains(names, *name) {
			names = append(names, *name)
		}
	}
	add(s.Spec.Source.VolumeSnapshotContentName)
	if s.Status != nil {
		add(s.Status.BoundVolumeSnapshotContentName)
	}
	if s.Spec.Source.PersistentVolumeClaimName != nil {
		own := wellknown.ContentName(string(s.UID))
		add(&own)
	}
	return names
}

// ContentIndexes are the ways to find VolumeSnapshotContents.
func ContentIndexes() map[string]Index[*Content] {
	return map[string]Index[*Content]{
		BySnapshot: func(c *Content) []string {
			ref := c.Spec.VolumeSnapshotRef
			return []string{keyString(Key{Namespace: ref.Namespace, Name: ref.Name})}
		},
		BySnapshotClass: func(c *Content) []string {
			if c.Spec.VolumeSnapshotClassName == nil {
				return nil
			}
			return present(*c.Spec.VolumeSnapshotClassName)
		},
		ByHandle: func(c *Content) []string { return present(ContentHandle(c)) },
	}
}

// ContentHandle is the value of ByHandle for the snapshot that a content has at the driver, empty when none
// is known.
func ContentHandle(c *Content) string {
	switch {
	case c.Status != nil && c.Status.SnapshotHandle != nil:
		return HandleKey(c.Spec.Driver, *c.Status.SnapshotHandle)
	case c.Spec.Source.SnapshotHandle != nil:
		return HandleKey(c.Spec.Driver, *c.Spec.Source.SnapshotHandle)
	default:
		return ""
	}
}

func present(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}
