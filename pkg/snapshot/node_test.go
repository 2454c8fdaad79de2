// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// TestNodeOf: a node that is taken by chance from those that match may not have the data; none at all leaves a content
// that nobody ever works on.
func TestNodeOf(t *testing.T) {
	nodes := map[string]map[string]string{"n1": {"zone": "a", "host": "n1"}, "n2": {"zone": "a", "host": "n2"}, "n3": {"zone": "b", "host": "n3"}}
	looked := 0
	labels := func(node string) (map[string]string, bool) {
		looked++
		on, ok := nodes[node]
		return on, ok
	}
	all := func() []string { return []string{"n1", "n2", "n3"} }
	for _, c := range []struct {
		name            string
		key, value      string
		identity        string
		want, complains string
		looks           int
	}{
		{name: "S97 no affinity, the node that made it", identity: "1-2-d-n1", want: "n1", looks: 1},
		{name: "S97 no affinity, and who made it is gone", identity: "1-2-d-n9", looks: 1},
		{name: "S97 no affinity, and no node made it", identity: "1-2-d", looks: 1},
		{name: "S97 the node of the affinity", key: "host", value: "n2", want: "n2", looks: 3},
		{name: "S97 of several the one that made it, with one look", key: "zone", value: "a", identity: "1-2-d-n2", want: "n2", looks: 1},
		{name: "S97 of several the first, when nobody knows", key: "zone", value: "a", identity: "1-2-d", want: "n1", looks: 2},
		{name: "S97 who made it is gone, and another reaches it", key: "zone", value: "a", identity: "1-2-d-n9", want: "n1", looks: 2},
		{name: "S97 who made it cannot reach it", key: "zone", value: "b", identity: "1-2-d-n1", want: "n3", looks: 4},
		{name: "S97 no node matches", key: "host", value: "n9", complains: "no node of the cluster matches", looks: 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			volume := &corev1.PersistentVolume{}
			volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeAttributes: map[string]string{wellknown.VolumeAttributeIdentity: c.identity}}
			if c.key != "" {
				volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: c.key, Operator: corev1.NodeSelectorOpIn, Values: []string{c.value}}},
				}}}}
			}
			looked = 0
			got, err := NodeOf(volume, labels, all)
			complaint := ""
			if err != nil {
				complaint = err.Error()
			}
			if got != c.want || !strings.Contains(complaint, c.complains) || (c.complains == "") != (err == nil) || looked != c.looks {
				t.Errorf("node %q, error %q, %d looks", got, complaint, looked)
			}
		})
	}
	if !slices.IsSorted(all()) {
		t.Error("the nodes of this test are not in order")
	}
}
