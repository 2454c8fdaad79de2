// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"fmt"

	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Values of Options.RestoreTopology.
const (
	IgnoreSource = "ignore"
	PreferSource = "prefer-source"
)

// near says where the data of a claim's source is, when the volume should be there rather than elsewhere.
// The node that the scheduler has selected counts for more: it knows where the pod can run.
func near(in ClaimInput) ([]topology.Segment, []topology.Warning) {
	if in.RestoreTopology != PreferSource || selectedNode(in.Claim) != "" {
		return nil, nil
	}
	return originOf(in)
}

// originOf says where the data of a claim's source is, as far as that is known. What a snapshot says of
// itself counts for more than its source volume, which may be gone or, by its handle, another.
func originOf(in ClaimInput) ([]topology.Segment, []topology.Warning) {
	if in.Source == nil {
		return nil, nil
	}
	var warnings []topology.Warning
	if content := in.Source.Content; content != nil {
		if text, ok := content.Annotations[wellknown.AnnSourceTopology]; ok {
			segments, err := topology.ParseSegments(text)
			if err == nil {
				return segments, nil
			}
			warnings = append(warnings, topology.Warning{
				Cause: "source of " + content.Name,
				Text:  fmt.Sprintf("annotation %s of VolumeSnapshotContent %s says where the snapshot's data is and cannot be understood, so the new volume may be far from it: %v; correct it or take it away", wellknown.AnnSourceTopology, content.Name, err),
			})
		}
	}
	if in.Source.Volume == nil {
		return nil, warnings
	}
	return topology.SegmentsOf(in.Source.Volume.Spec.NodeAffinity), warnings
}
