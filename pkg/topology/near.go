// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"encoding/json"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
)

// preferred are all places in order of preference: from first to the end and around, with those near
// before all others. Each part keeps that order, so that replicas still spread within it. Where none is near, those
// beyond the limit are left out, since they are not sent.
func (p *places) preferred(first int, near []Segment) []*csi.Topology {
	count := len(p.segments)
	if len(near) == 0 {
		count = min(count, MaxSegments)
	}
	order := make([]*csi.Topology, 0, count)
	var rest []*csi.Topology
	for i := range count {
		at := (first + i) % len(p.segments)
		if len(near) == 0 || isNear(p.segments[at], near) {
			order = append(order, p.topologies[at])
		} else {
			rest = append(rest, p.topologies[at])
		}
	}
	return append(order, rest...)
}

// isNear tells that a segment and one of those near lie within each other. The empty segment is
// everywhere, and says nothing.
func isNear(segment Segment, near []Segment) bool {
	for _, other := range near {
		if len(other) > 0 && len(segment) > 0 && (segment.Contains(other) || other.Contains(segment)) {
			return true
		}
	}
	return false
}

// SegmentsOf are the segments of a volume's affinity, as far as it can be read as segments: a hint needs no
// certainty, and a volume made by hand may have an affinity that no driver would write.
func SegmentsOf(affinity *corev1.VolumeNodeAffinity) []Segment {
	if affinity == nil || affinity.Required == nil {
		return nil
	}
	var terms []corev1.TopologySelectorTerm
	for _, term := range affinity.Required.NodeSelectorTerms {
		if selector, ok := selectorOf(term); ok {
			terms = append(terms, selector)
		}
	}
	segments, err := expand(terms)
	if err != nil {
		return nil
	}
	return segments.segments
}

// selectorOf is a term of an affinity that asks for labels with given values. One that asks for anything
// else says less than it seems without that, so it says nothing here.
func selectorOf(term corev1.NodeSelectorTerm) (corev1.TopologySelectorTerm, bool) {
	var selector corev1.TopologySelectorTerm
	for _, expression := range term.MatchExpressions {
		if expression.Operator != corev1.NodeSelectorOpIn {
			return selector, false
		}
		selector.MatchLabelExpressions = append(selector.MatchLabelExpressions,
			corev1.TopologySelectorLabelRequirement{Key: expression.Key, Values: expression.Values})
	}
	return selector, len(term.MatchFields) == 0
}

// ParseSegments reads segments written as a JSON list of objects with one string for each label.
func ParseSegments(text string) ([]Segment, error) {
	var list []map[string]string
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("reading a JSON list of topology segments: %w", err)
	}
	if len(list) > MaxSegments {
		return nil, fmt.Errorf("reading a JSON list of topology segments: %d are more than %d", len(list), MaxSegments)
	}
	var segments []Segment
	for _, labels := range list {
		if len(labels) > 0 {
			segments = append(segments, SegmentOf(labels))
		}
	}
	return newPlaces(segments).segments, nil
}
