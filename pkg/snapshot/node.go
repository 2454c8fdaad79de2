// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// NodeOf names the node whose snapshotter takes the snapshots of a volume, empty when any may, which is so for
// a volume that says nothing of its place. Nodes are looked up one at a time; all gives every name, in order.
//
// Several nodes may reach a volume. The one whose driver made it is preferred, since it has the data for sure.
func NodeOf(volume *corev1.PersistentVolume, labels func(node string) (map[string]string, bool), all func() []string) (string, error) {
	if volume.Spec.NodeAffinity == nil || volume.Spec.NodeAffinity.Required == nil {
		return "", nil
	}
	reaches := func(node string) (bool, error) {
		on, known := labels(node)
		if !known {
			return false, nil
		}
		return topology.Accessible(volume.Spec.NodeAffinity, on)
	}
	if source := volume.Spec.CSI; source != nil {
		made := wellknown.NodeOfIdentity(source.VolumeAttributes[wellknown.VolumeAttributeIdentity], source.Driver)
		if ok, err := reaches(made); ok || err != nil {
			return made, err
		}
	}
	for _, node := range all() {
		if ok, err := reaches(node); ok || err != nil {
			return node, err
		}
	}
	return "", fmt.Errorf("no node of the cluster matches the node affinity of volume %s, so that nobody can take a snapshot of it; this is looked at again by itself", volume.Name)
}
