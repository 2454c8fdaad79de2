// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// NodeOf names the node whose snapshotter takes the snapshots of a volume. It is empty for a volume that says nothing
// of its place and was not made by a node that is there: then it is nobody's. Nodes are looked up one at a time; all
// gives every name, in order.
//
// Several nodes may reach a volume. The one whose driver made it is preferred, since it has the data for sure.
func NodeOf(volume *corev1.PersistentVolume, labels func(node string) (map[string]string, bool), all func() []string) (string, error) {
	made := maker(volume)
	if volume.Spec.NodeAffinity == nil || volume.Spec.NodeAffinity.Required == nil {
		if _, known := labels(made); made != "" && known {
			return made, nil
		}
		return "", nil
	}
	reaches := func(node string) (bool, error) {
		on, known := labels(node)
		if !known {
			return false, nil
		}
		return topology.Accessible(volume.Spec.NodeAffinity, on)
	}
	if ok, err := reaches(made); ok || err != nil {
		return made, err
	}
	for _, node := range all() {
		if ok, err := reaches(node); ok || err != nil {
			return node, err
		}
	}
	return "", fmt.Errorf("no node of the cluster matches the node affinity of volume %s, so that nobody can take a snapshot of it; this is looked at again by itself", volume.Name)
}

// maker is the node whose driver made a volume, empty when that is not on record.
func maker(volume *corev1.PersistentVolume) string {
	source := volume.Spec.CSI
	if source == nil {
		return ""
	}
	return wellknown.NodeOfIdentity(source.VolumeAttributes[wellknown.VolumeAttributeIdentity], source.Driver)
}
