// SPDX-License-Identifier: Apache-2.0

package kube

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// groupVersion is the version of group snapshots that is served since they are generally available.
var groupVersion = schema.GroupVersion{Group: wellknown.GroupSnapshotGroup, Version: "v1"}

// GroupSnapshot is a VolumeGroupSnapshot, with the fields that are read here and no others: groups are only told of.
type GroupSnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   GroupSnapshotSpec   `json:"spec"`
	Status GroupSnapshotStatus `json:"status"`
}

// GroupSnapshotSpec is what is asked for.
type GroupSnapshotSpec struct {
	// VolumeGroupSnapshotClassName is empty where the default class is meant, or none is needed.
	VolumeGroupSnapshotClassName string              `json:"volumeGroupSnapshotClassName"`
	Source                       GroupSnapshotSource `json:"source"`
}

// GroupSnapshotSource is where it comes from, if it exists at the driver already.
type GroupSnapshotSource struct {
	VolumeGroupSnapshotContentName string `json:"volumeGroupSnapshotContentName"`
}

// GroupSnapshotStatus is how far it is.
type GroupSnapshotStatus struct {
	ReadyToUse bool `json:"readyToUse"`
}

// GroupSnapshotList is a list of them.
type GroupSnapshotList = List[GroupSnapshot, *GroupSnapshot]

// GroupSnapshotClass is a VolumeGroupSnapshotClass.
type GroupSnapshotClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Driver string `json:"driver"`
}

// GroupSnapshotClassList is a list of them.
type GroupSnapshotClassList = List[GroupSnapshotClass, *GroupSnapshotClass]

// DeepCopyObject implements runtime.Object.
func (g *GroupSnapshot) DeepCopyObject() runtime.Object {
	copied := *g
	copied.ObjectMeta = *g.ObjectMeta.DeepCopy()
	return &copied
}

// DeepCopyObject implements runtime.Object.
func (c *GroupSnapshotClass) DeepCopyObject() runtime.Object {
	copied := *c
	copied.ObjectMeta = *c.ObjectMeta.DeepCopy()
	return &copied
}
