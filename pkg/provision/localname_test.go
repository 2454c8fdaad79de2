// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/topology"
)

// A static volume names its node by a field, which the API server takes. Catches a process that takes what it cannot read for another node's.
func TestVolumeOfANodeByItsName(t *testing.T) {
	for _, node := range []string{"n1", "n2"} {
		c := Config{Driver: "d", Local: Local{Node: node, Segment: topology.SegmentOf(map[string]string{"host": node})}}
		v := &corev1.PersistentVolume{}
		v.Name = "static"
		v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "h"}
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "n", Name: "c", UID: "u"}
		v.Status.Phase = corev1.VolumeReleased
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}},
		}}}}
		if kept := c.KeepsVolume(v); kept != (node == "n1") {
			t.Errorf("%s keeps it: %v", node, kept)
		}
	}
}
