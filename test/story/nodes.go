// SPDX-License-Identifier: Apache-2.0

package story

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/test/controlplane"
)

// Nodes are those that the story speaks of: one for the control plane, tainted and without the driver, and two workers
// in one zone and in one rack.
func Nodes() []controlplane.Node {
	master := controlplane.Node{
		Name:   "control-plane",
		Labels: map[string]string{zoneKey: zoneRight},
		Taints: []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}},
	}
	nodes := []controlplane.Node{master}
	for name, labels := range Topology() {
		nodes = append(nodes, controlplane.Node{Name: name, Labels: labels})
	}
	return nodes
}

// Topology is where the driver is.
func Topology() map[string]map[string]string {
	return map[string]map[string]string{
		"worker-1": {zoneKey: zoneRight, rackKey: rackRight},
		"worker-2": {zoneKey: zoneRight, rackKey: rackRight},
	}
}
