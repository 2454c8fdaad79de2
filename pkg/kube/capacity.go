// SPDX-License-Identifier: Apache-2.0

package kube

import (
	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/pkg/topology"
)

// CapacityIndexes are the ways to find CSIStorageCapacity objects.
func CapacityIndexes() map[string]Index[*storagev1.CSIStorageCapacity] {
	return map[string]Index[*storagev1.CSIStorageCapacity]{
		ByStorageClass: func(c *storagev1.CSIStorageCapacity) []string { return []string{c.StorageClassName} },
		BySegment: func(c *storagev1.CSIStorageCapacity) []string {
			segment, ok := segmentText(c)
			if !ok {
				return nil
			}
			return []string{segment}
		},
		BySlot: func(c *storagev1.CSIStorageCapacity) []string {
			segment, ok := segmentText(c)
			if !ok {
				return nil
			}
			return []string{SlotValue(c.StorageClassName, segment)}
		},
	}
}

// SlotValue is the value of BySlot for a class and the text of a segment.
func SlotValue(class, segment string) string { return class + "\x00" + segment }

func segmentText(c *storagev1.CSIStorageCapacity) (string, bool) {
	if c.NodeTopology == nil || len(c.NodeTopology.MatchExpressions) > 0 {
		return "", false
	}
	return topology.SegmentOf(c.NodeTopology.MatchLabels).String(), true
}
