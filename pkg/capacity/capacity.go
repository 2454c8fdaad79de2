// SPDX-License-Identifier: Apache-2.0

// Package capacity owns which CSIStorageCapacity objects there should be: one for each segment and class,
// what is in it, whom it belongs to, and the difference with the objects that exist.
//
// It must not know when the driver is asked, nor how objects are read and written.
//
// It stands in the walk of a capacity: segments of topology and classes → what the driver has answered →
// NextSteps → act of controller/storagecapacity.
package capacity

import (
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Rules are what all objects of one process have in common.
type Rules struct {
	Driver    string
	Namespace string
	ManagedBy string
	// Owner is the controller that the objects go with. Nil leaves owners as they are.
	Owner *metav1.OwnerReference
	// Immediate publishes for classes with immediate binding as well.
	Immediate bool
}

// IsPublished tells whether there are objects for a class. A class without binding mode does not bind
// immediately: the API server always gives one, so only objects made by hand have none.
func (r Rules) IsPublished(class *storagev1.StorageClass) bool {
	immediate := class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingImmediate
	return class.Provisioner == r.Driver && (r.Immediate || !immediate)
}

// IsOurs tells whether an object is managed by this process. All others are never touched.
func (r Rules) IsOurs(object *storagev1.CSIStorageCapacity) bool {
	return object.Namespace == r.Namespace &&
		object.Labels[wellknown.LabelCapacityDriver] == r.Driver && object.Labels[wellknown.LabelCapacityManagedBy] == r.ManagedBy
}

// Slot is the place of one object: the name of a class, and a segment in its canonical form.
type Slot struct{ Class, Segment string }

// SlotOf is the slot that an object fills. An object whose selector is of another form than ours fills none:
// a missing one is for no node at all, and one with expressions may be for several segments.
func SlotOf(object *storagev1.CSIStorageCapacity) (Slot, bool) {
	if object.NodeTopology == nil || len(object.NodeTopology.MatchExpressions) > 0 {
		return Slot{}, false
	}
	return Slot{object.StorageClassName, topology.SegmentOf(object.NodeTopology.MatchLabels).String()}, true
}

// build is the whole object of a slot.
func (r Rules) build(in Input) *storagev1.CSIStorageCapacity {
	object := &storagev1.CSIStorageCapacity{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: wellknown.CapacityNamePrefix, Namespace: r.Namespace,
			Labels: map[string]string{wellknown.LabelCapacityDriver: r.Driver, wellknown.LabelCapacityManagedBy: r.ManagedBy},
		},
		// The empty segment selects all nodes; without a selector it would be none.
		NodeTopology:      &metav1.LabelSelector{MatchLabels: in.Segment.Labels()},
		StorageClassName:  in.Class,
		Capacity:          in.Room.capacity(),
		MaximumVolumeSize: in.Room.maximum(),
	}
	object.OwnerReferences, _ = r.owners(nil)
	return object
}

// owners is the list of owners as it should be, and whether that differs. There can be one controller only:
// that of an earlier deployment is replaced, since the API server refuses a second one. Others stay.
func (r Rules) owners(now []metav1.OwnerReference) (wanted []metav1.OwnerReference, differs bool) {
	if r.Owner == nil {
		return now, false
	}
	owned := false
	for _, reference := range now {
		isController := reference.Controller != nil && *reference.Controller
		switch {
		case isController && reference.UID == r.Owner.UID:
			owned = true
			wanted = append(wanted, reference)
		case isController, reference.UID == r.Owner.UID:
			differs = true
		default:
			wanted = append(wanted, reference)
		}
	}
	if !owned {
		return append(wanted, *r.Owner), true
	}
	return wanted, differs
}
