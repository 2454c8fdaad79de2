// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/csi-tandem/csi-tandem/pkg/topology"
)

// away tells of a selected node that the data of the source cannot be reached from, as far as is known. A
// driver that copies across segments does not mind; one that does not fails, and then this is why.
func away(in ClaimInput, node string) string {
	segments, _ := originOf(in)
	if node == "" || len(segments) == 0 {
		return ""
	}
	labels, known := in.Topology.Labels(node)
	if !known {
		return ""
	}
	at := topology.SegmentOf(labels)
	if slices.ContainsFunc(segments, at.Contains) {
		return ""
	}
	places := make([]string, len(segments))
	for i, segment := range segments {
		places[i] = segment.String()
	}
	return fmt.Sprintf("the data of the source is in %s only, and the selected node %q is not; let the pod run there, for instance by a node selector", strings.Join(places, ", "), node)
}

// short tells of a clone that asks for less than the volume of its source really has: the driver may have
// rounded that up, or somebody has expanded it. Whether a driver can make the smaller copy is its own
// matter, so that nothing is refused for it.
func short(in ClaimInput, asked int64) string {
	if in.Source == nil || in.Source.Claim == nil || in.Source.Volume == nil {
		return ""
	}
	has := in.Source.Volume.Spec.Capacity.Storage().Value()
	if has <= asked {
		return ""
	}
	return fmt.Sprintf("the source volume %s has %s, more than the %s that are asked for: ask for at least that much", in.Source.Volume.Name,
		resource.NewQuantity(has, resource.BinarySI), resource.NewQuantity(asked, resource.BinarySI))
}
