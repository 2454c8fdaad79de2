// SPDX-License-Identifier: Apache-2.0

package storagecapacity

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/topology"
)

// The functions that hear of changes may be those of a room that there is not, which does nothing.

// Provisioned hears of a new PersistentVolume: there is less room where it is. It only puts keys into a
// queue, and never holds up the one who tells.
func (c *Controller) Provisioned(volume *corev1.PersistentVolume) { c.refreshAt(volume) }

// Deleted hears of a volume that the driver has removed: there is more room where it was.
func (c *Controller) Deleted(volume *corev1.PersistentVolume) { c.refreshAt(volume) }

// Failed hears that the driver has not made a volume of a class. Where a node was selected, its segment is
// the one that the scheduler chose for its room; without, it may have been any.
func (c *Controller) Failed(class, node string) {
	if c == nil || !c.memory.hasBegun() {
		return
	}
	group, ok := c.groupOf(class)
	if !ok {
		return
	}
	if segment, ok := c.Topology.NodeSegment(node); ok && node != "" {
		key := askKey(group, segment.String())
		if c.memory.hurry(key) {
			c.add(key)
		}
		return
	}
	c.add(groupKey(group))
}

// refreshAt asks about the segments of a volume for all classes, since they may share the room. A volume
// without a place concerns all segments of its class.
func (c *Controller) refreshAt(volume *corev1.PersistentVolume) {
	if c == nil || !c.memory.hasBegun() {
		return
	}
	affinity := volume.Spec.NodeAffinity
	if affinity == nil || affinity.Required == nil {
		if group, ok := c.groupOf(volume.Spec.StorageClassName); ok {
			c.add(groupKey(group))
		}
		return
	}
	for _, term := range affinity.Required.NodeSelectorTerms {
		segment, ok := segmentOf(term)
		if !ok {
			continue
		}
		for _, key := range c.memory.keysAt(segment.String()) {
			c.memory.hurry(key)
			c.add(key)
		}
	}
}

func (c *Controller) groupOf(class string) (string, bool) {
	classes, _ := c.memory.known()
	group, ok := classes.groupOf[class]
	return group, ok
}

// segmentOf is the segment that a term of an affinity stands for, as topology.Affinity writes it.
func segmentOf(term corev1.NodeSelectorTerm) (topology.Segment, bool) {
	labels := map[string]string{}
	for _, expression := range term.MatchExpressions {
		if expression.Operator != corev1.NodeSelectorOpIn || len(expression.Values) != 1 {
			return nil, false
		}
		labels[expression.Key] = expression.Values[0]
	}
	return topology.SegmentOf(labels), len(labels) > 0 && len(term.MatchFields) == 0
}
