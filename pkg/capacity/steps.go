// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/topology"
)

// Step is one thing to do about one object.
type Step interface{ isStep() }

// Create makes the object of a slot that has none.
type Create struct{ Object *storagev1.CSIStorageCapacity }

// Update gives an object what it should hold.
type Update struct {
	Object   *storagev1.CSIStorageCapacity
	Capacity *resource.Quantity
	Maximum  *resource.Quantity
	Owners   []metav1.OwnerReference
}

// Delete removes an object that nobody needs.
type Delete struct {
	Object *storagev1.CSIStorageCapacity
	Why    string
}

// Keep leaves an object as it is.
type Keep struct{ Object *storagev1.CSIStorageCapacity }

func (Create) isStep() {}
func (Update) isStep() {}
func (Delete) isStep() {}
func (Keep) isStep()   {}

// Why objects are deleted.
const (
	Unwanted  = "its segment or its class is gone"
	Duplicate = "an older one says the same"
)

// Input is what is known of one slot.
type Input struct {
	Class   string
	Segment topology.Segment
	// IsWanted tells that the driver runs in the segment and that the class is published.
	IsWanted bool
	// Room is the driver's last answer; nil while there is none.
	Room *Room
	// Found are the objects of the slot.
	Found []*storagev1.CSIStorageCapacity
}

// NextSteps is what is to be done about the objects of a slot. Without an answer of the driver nothing is
// created or changed: an old value is better than none.
func (r Rules) NextSteps(in Input) []Step {
	var steps []Step
	found := r.ours(in.Found)
	if !in.IsWanted {
		for _, object := range found {
			steps = append(steps, Delete{object, Unwanted})
		}
		return steps
	}
	if len(found) == 0 {
		if in.Room != nil {
			steps = append(steps, Create{r.build(in)})
		}
		return steps
	}
	steps = append(steps, r.settle(found[0], in.Room))
	for _, object := range found[1:] {
		steps = append(steps, Delete{object, Duplicate})
	}
	return steps
}

func (r Rules) settle(object *storagev1.CSIStorageCapacity, room *Room) Step {
	if room == nil {
		return Keep{object}
	}
	owners, differs := r.owners(object.OwnerReferences)
	if room.isIn(object) && !differs {
		return Keep{object}
	}
	return Update{Object: object, Capacity: room.capacity(), Maximum: room.maximum(), Owners: owners}
}

// ours are the objects that are ours and here to stay, the oldest first, so that two processes that clear
// up after a race keep the same one.
func (r Rules) ours(found []*storagev1.CSIStorageCapacity) []*storagev1.CSIStorageCapacity {
	var ours []*storagev1.CSIStorageCapacity
	for _, object := range found {
		if r.IsOurs(object) && object.DeletionTimestamp == nil {
			ours = append(ours, object)
		}
	}
	slices.SortFunc(ours, func(a, b *storagev1.CSIStorageCapacity) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
	return ours
}
