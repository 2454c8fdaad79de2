// SPDX-License-Identifier: Apache-2.0

// Package wellknown owns every string that is protocol: annotations, finalizers, labels, reserved
// parameter keys, event reasons, lease names, and object names derived from a prefix and a UID.
//
// It must not know what the strings are used for, and imports nothing of ours.
//
// It stands at the start of every walk: whoever reads or writes an object asks here what a thing is
// called, so that a live cluster can switch between these sidecars and others that speak the same
// protocol.
package wellknown

// ReservedParameterPrefix marks the class parameters that are instructions to the sidecars and never
// reach the driver.
const ReservedParameterPrefix = "csi.storage.k8s.io/"

// SnapshotGroup is the API group of VolumeSnapshot and its content and class.
const SnapshotGroup = "snapshot.storage.k8s.io"

// GroupSnapshotGroup is the API group of VolumeGroupSnapshot.
const GroupSnapshotGroup = "groupsnapshot.storage.k8s.io"

// GatewayGroup is the API group of ReferenceGrant.
const GatewayGroup = "gateway.networking.k8s.io"

// Kinds that can be the data source of a claim.
const (
	KindVolumeSnapshot        = "VolumeSnapshot"
	KindPersistentVolumeClaim = "PersistentVolumeClaim"
	KindVolumeGroupSnapshot   = "VolumeGroupSnapshot"
)
