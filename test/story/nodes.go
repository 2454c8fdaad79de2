// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/test/controlplane"
	"github.com/csi-tandem/csi-tandem/test/stage"
)

// Layout says where the nodes of the story are.
type Layout int

// The layouts. In OneZone both workers are in the zone and in the rack that the examples speak of; in TwoZones the second
// is elsewhere.
const (
	OneZone Layout = iota
	TwoZones
)

// Nodes are those that the story speaks of: one for the control plane, tainted and without the driver, and two workers.
func Nodes(layout Layout) []controlplane.Node {
	nodes := []controlplane.Node{master()}
	for name, labels := range Topology(layout) {
		nodes = append(nodes, controlplane.Node{Name: name, Labels: labels})
	}
	return nodes
}

func master() controlplane.Node {
	return controlplane.Node{
		Name:   "control-plane",
		Labels: map[string]string{zoneKey: zoneRight},
		Taints: []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}},
	}
}

// Topology is where the driver is.
func Topology(layout Layout) map[string]map[string]string {
	second := map[string]string{zoneKey: zoneRight, rackKey: rackRight}
	if layout == TwoZones {
		second = map[string]string{zoneKey: zoneOther, rackKey: rackOther}
	}
	return map[string]map[string]string{
		"worker-1": {zoneKey: zoneRight, rackKey: rackRight},
		"worker-2": second,
	}
}

// Pool is how much room each zone has when the workers are real and in two of them.
const Pool = 20 << 30

// Real changes a stage and its cast for workers that are real nodes.
func Real(o *stage.Options, r *stage.Roles) {
	o.Nodes, o.Real, o.Disks = []controlplane.Node{master()}, []string{"worker-1", "worker-2"}, []string{"/mnt/disks/one"}
	r.Topology, r.Capacity = Topology(TwoZones), true
	r.Flags = append(r.Flags, fmt.Sprintf("--pool-capacity=%d", Pool))
	r.Env = append(r.Env, "NAMESPACE="+stage.Namespace)
}

// RealFlags are those of the provisioner beside real nodes: volumes are made where the pod is to run or not at all, and by its
// capacity objects the scheduler knows where there is room.
var RealFlags = []string{"--strict-topology", "--enable-capacity", "--capacity-ownerref-level=-1"}
