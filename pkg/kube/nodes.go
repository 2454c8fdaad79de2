// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// NodeIndex is what the feed of nodes fills; topology.Index is one.
type NodeIndex interface {
	// SetNode tells the labels of a node; the map is not kept by the caller.
	SetNode(name string, labels map[string]string)
	// RemoveNode tells that a node is gone.
	RemoveNode(name string)
	// SetDriverKeys tells the topology keys that the driver has registered on a node.
	SetDriverKeys(node string, keys []string)
	// RemoveDriver tells that the driver is not registered on a node that has a CSINode.
	RemoveDriver(node string)
	// RemoveCSINode tells that nothing is known of the drivers on a node any more.
	RemoveCSINode(node string)
}

// FeedNodes keeps an index true to the Nodes and CSINodes of the cluster. Only labels and the driver's
// own keys count, so that heartbeats cost nothing.
func FeedNodes(index NodeIndex, driverName string, nodes *Informer[*corev1.Node], csiNodes *Informer[*storagev1.CSINode]) {
	nodes.OnChange(func(change Change[*corev1.Node]) {
		if change.Deleted {
			index.RemoveNode(change.Old.Name)
			return
		}
		index.SetNode(change.New.Name, change.New.Labels)
	})
	csiNodes.OnChange(func(change Change[*storagev1.CSINode]) {
		node := change.Object()
		if change.Deleted {
			index.RemoveCSINode(node.Name)
			return
		}
		FeedCSINode(index, driverName, node)
	})
}

// FeedCSINode tells an index what a CSINode says of a driver.
func FeedCSINode(index NodeIndex, driverName string, node *storagev1.CSINode) {
	for _, driver := range node.Spec.Drivers {
		if driver.Name == driverName {
			index.SetDriverKeys(node.Name, slices.Clone(driver.TopologyKeys))
			return
		}
	}
	index.RemoveDriver(node.Name)
}
