// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
)

// NodeOf is the hook of Deps over a cache of nodes. The node that made a volume costs one look-up; only for
// volumes that nobody is known to have made all nodes are gone through.
func NodeOf(nodes *kube.Store[*corev1.Node]) func(*corev1.PersistentVolume) (string, error) {
	labels := func(name string) (map[string]string, bool) {
		node, ok := nodes.Lookup(kube.Key{Name: name})
		if !ok {
			return nil, false
		}
		return node.Labels, true
	}
	all := func() []string {
		var names []string
		for _, node := range nodes.All() {
			names = append(names, node.Name)
		}
		slices.Sort(names)
		return names
	}
	return func(volume *corev1.PersistentVolume) (string, error) { return snapshot.NodeOf(volume, labels, all) }
}
