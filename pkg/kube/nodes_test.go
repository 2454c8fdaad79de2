// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// told writes down what the feed says.
type told struct{ heard }

func (x *told) SetNode(name string, labels map[string]string) {
	x.add(fmt.Sprintf("node %s %v", name, labels))
}
func (x *told) SetDriverKeys(node string, keys []string) {
	x.add(fmt.Sprintf("driver on %s %v", node, keys))
}
func (x *told) RemoveNode(name string)    { x.add("no node " + name) }
func (x *told) RemoveDriver(node string)  { x.add("no driver on " + node) }
func (x *told) RemoveCSINode(node string) { x.add("nothing of " + node) }

func TestFeedNodes(t *testing.T) {
	h := kit.New(t)
	h.Put(kit.Node("a", map[string]string{"zone": "1"}), kit.CSINode("a", "zone"), kit.CSINode("b"))
	nodes := kube.NewInformer(h.API, kube.InformerOptions[*corev1.Node]{Trim: kube.TrimNode})
	csiNodes := kube.NewInformer(h.API, kube.InformerOptions[*storagev1.CSINode]{})
	index := &told{}
	kube.FeedNodes(index, kit.DriverName, nodes, csiNodes)
	run(t, nodes)
	run(t, csiNodes)
	expect := func(line string) {
		t.Helper()
		await(t, line, func() bool { return index.has(line) })
	}
	expect("node a map[zone:1]")
	expect("driver on a [zone]")
	expect("driver on b []")

	kit.Edit(h.API, kube.Key{Name: "a"}, func(n *storagev1.CSINode) { n.Spec.Drivers[0].Name = "other.example" })
	expect("no driver on a")
	kit.Remove[*corev1.Node](h.API, kube.Key{Name: "a"})
	expect("no node a")
	kit.Remove[*storagev1.CSINode](h.API, kube.Key{Name: "a"})
	expect("nothing of a")
}

func TestTrimNodeKeepsLabels(t *testing.T) {
	node := kit.Node("a", map[string]string{"zone": "1"})
	node.Spec.PodCIDR, node.Status.Phase = "10.0.0.0/24", corev1.NodeRunning
	kube.TrimNode(node)
	if node.Labels["zone"] != "1" || node.Name != "a" || node.Spec.PodCIDR != "" || node.Status.Phase != "" {
		t.Errorf("kept %+v", node)
	}
}
