// SPDX-License-Identifier: Apache-2.0

package storagecapacity

import (
	"maps"
	"slices"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/pkg/capacity"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
)

// Watch tells the queue which changes concern it.
func (c *Controller) Watch(classes *kube.Informer[*storagev1.StorageClass], objects *kube.Informer[*storagev1.CSIStorageCapacity]) {
	classes.OnChange(func(change kube.Change[*storagev1.StorageClass]) { c.addAll(c.KeysOfClass(change)) })
	objects.OnChange(func(change kube.Change[*storagev1.CSIStorageCapacity]) { c.addAll(c.KeysOfObject(change)) })
	c.WatchSegments()
}

// WatchSegments follows the topology.
func (c *Controller) WatchSegments() {
	c.Topology.Watch(func(segment topology.Segment, exists bool) { c.addAll(c.keysOfSegment(segment, exists)) })
}

func (c *Controller) addAll(keys []reconcile.Key) {
	for _, key := range keys {
		c.add(key)
	}
}

// Begin looks at everything once: all questions, and all objects that nobody needs. Before that changes are
// only noted, since what is not known yet would look as if it were gone.
func (c *Controller) Begin() []reconcile.Key {
	classes := c.memory.start()
	keys := []reconcile.Key{{UID: ofLack}}
	for _, id := range slices.Sorted(maps.Keys(classes.groups)) {
		keys = append(keys, c.memory.keysOf(id)...)
	}
	filled := map[capacity.Slot]string{}
	for _, object := range c.Objects.All() {
		if !c.base.IsOurs(object) {
			continue
		}
		slot, ok := capacity.SlotOf(object)
		in, _ := c.memory.input(slot)
		first, isTaken := filled[slot]
		switch {
		case !ok || !in.IsWanted:
			keys = append(keys, objectKey(object.Name))
		case isTaken:
			// Which of them is needless is decided when all are looked at.
			keys = append(keys, objectKey(first), objectKey(object.Name))
		default:
			filled[slot] = object.Name
		}
	}
	return keys
}

// KeysOfClass are the questions of a class that is new or has other parameters, and the objects of one that
// is not published any more. What else changes about a class does not matter.
func (c *Controller) KeysOfClass(change kube.Change[*storagev1.StorageClass]) []reconcile.Key {
	if change.Object().Provisioner != c.DriverName && (change.Old == nil || change.Old.Provisioner != c.DriverName) {
		return nil
	}
	next := newTable(c.base, c.Classes.All())
	before := c.memory.setClasses(next)
	if !c.memory.hasBegun() {
		return nil
	}
	var keys []reconcile.Key
	name := change.Object().Name
	group, isPublished := next.groupOf[name]
	if isPublished && before.groupOf[name] != group {
		keys = c.memory.keysOf(group)
	}
	if !isPublished {
		for _, object := range c.Objects.ByIndex(kube.ByStorageClass, name) {
			keys = append(keys, objectKey(object.Name))
		}
	}
	return keys
}

// keysOfSegment are the questions about a segment, and when it is gone its objects as well.
func (c *Controller) keysOfSegment(segment topology.Segment, exists bool) []reconcile.Key {
	text := segment.String()
	if exists {
		c.memory.setSegment(text, segment)
	}
	keys := c.memory.keysAt(text)
	if !exists {
		c.memory.removeSegment(text)
	}
	if !c.memory.hasBegun() {
		return nil
	}
	if !exists {
		for _, object := range c.Objects.ByIndex(kube.BySegment, text) {
			keys = append(keys, objectKey(object.Name))
		}
	}
	return keys
}

// KeysOfObject says what is to be looked at because an object is not as it should be: somebody has changed
// or deleted it, or there is one too many. Our own writes come back as they should be.
func (c *Controller) KeysOfObject(change kube.Change[*storagev1.CSIStorageCapacity]) []reconcile.Key {
	object := change.Object()
	slot, ok := capacity.SlotOf(object)
	c.memory.shown(slot, kube.KeyOf(object))
	wasOurs := change.Old != nil && c.base.IsOurs(change.Old)
	isOurs := !change.Deleted && c.base.IsOurs(object) && object.DeletionTimestamp == nil
	if !c.memory.hasBegun() || !wasOurs && !isOurs {
		return nil
	}
	in, question := c.memory.input(slot)
	switch {
	case isOurs && !(ok && in.IsWanted):
		return []reconcile.Key{objectKey(object.Name)}
	case !in.IsWanted:
		return nil
	}
	in.Found = c.found(slot)
	return keysOfSteps(c.rules().NextSteps(in), question)
}

func keysOfSteps(steps []capacity.Step, question reconcile.Key) []reconcile.Key {
	var keys []reconcile.Key
	for _, step := range steps {
		switch s := step.(type) {
		case capacity.Delete:
			keys = append(keys, objectKey(s.Object.Name))
		case capacity.Create, capacity.Update:
			keys = append(keys, question)
		}
	}
	return keys
}
