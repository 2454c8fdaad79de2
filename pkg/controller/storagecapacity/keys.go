// SPDX-License-Identifier: Apache-2.0

package storagecapacity

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/capacity"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
)

// Sorts of keys, in their UID. Without one a key is a segment and a group of classes that the driver is
// asked about: one question for all classes with the same parameters.
const (
	// ofObject is an object that may be needless.
	ofObject types.UID = "object"
	// ofGroup is all segments of a group of classes.
	ofGroup types.UID = "classes"
)

func askKey(group, segment string) reconcile.Key {
	return reconcile.Key{Namespace: group, Name: segment}
}

func groupKey(group string) reconcile.Key { return reconcile.Key{Name: group, UID: ofGroup} }

func objectKey(name string) reconcile.Key { return reconcile.Key{Name: name, UID: ofObject} }

func slotValue(slot capacity.Slot) string { return kube.SlotValue(slot.Class, slot.Segment) }

// sortKeys leaves nothing to the order of a map.
func sortKeys(keys []reconcile.Key) {
	slices.SortFunc(keys, func(a, b reconcile.Key) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
	})
}
