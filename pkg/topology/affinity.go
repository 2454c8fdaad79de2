// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Affinity is what the driver said about a volume's place, as the affinity of a PersistentVolume. A
// volume without any segment gets none: a selector without terms is refused by the API server.
func Affinity(accessible []*csi.Topology) *corev1.VolumeNodeAffinity {
	var terms []corev1.NodeSelectorTerm
	for _, topology := range accessible {
		segment := SegmentOf(topology.GetSegments())
		if len(segment) == 0 {
			continue
		}
		var term corev1.NodeSelectorTerm
		for _, pair := range segment {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{
				Key: pair.Key, Operator: corev1.NodeSelectorOpIn, Values: []string{pair.Value},
			})
		}
		terms = append(terms, term)
	}
	if len(terms) == 0 {
		return nil
	}
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}
}

// Accessible tells whether a node with these labels can reach a volume. An affinity that cannot be
// understood is an error and not a no, because a volume is deleted on the strength of the answer.
func Accessible(affinity *corev1.VolumeNodeAffinity, node map[string]string) (bool, error) {
	return AccessibleFrom(affinity, "", node)
}

// AccessibleFrom is Accessible for a node whose name is known, by which an affinity may choose it too.
func AccessibleFrom(affinity *corev1.VolumeNodeAffinity, name string, node map[string]string) (bool, error) {
	if affinity == nil || affinity.Required == nil {
		return true, nil
	}
	for _, term := range affinity.Required.NodeSelectorTerms {
		match, err := matches(term, name, node)
		if err != nil || match {
			return match, err
		}
	}
	return false, nil
}

// IsOutside tells that a volume is certainly not in a segment: each term asks for another value of a key that the segment has. A key that it
// lacks proves nothing, and neither does an affinity that cannot be read.
func IsOutside(affinity *corev1.VolumeNodeAffinity, s Segment) bool {
	if affinity == nil || affinity.Required == nil || len(affinity.Required.NodeSelectorTerms) == 0 {
		return false
	}
	for _, term := range affinity.Required.NodeSelectorTerms {
		known := corev1.NodeSelectorTerm{MatchFields: term.MatchFields}
		for _, expression := range term.MatchExpressions {
			if s.has(expression.Key) {
				known.MatchExpressions = append(known.MatchExpressions, expression)
			}
		}
		if match, err := matches(known, "", s.Labels()); err != nil || match || len(known.MatchExpressions) == 0 {
			return false
		}
	}
	return true
}

var operators = map[corev1.NodeSelectorOperator]selection.Operator{
	corev1.NodeSelectorOpIn:           selection.In,
	corev1.NodeSelectorOpNotIn:        selection.NotIn,
	corev1.NodeSelectorOpExists:       selection.Exists,
	corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
	corev1.NodeSelectorOpGt:           selection.GreaterThan,
	corev1.NodeSelectorOpLt:           selection.LessThan,
}

// matches tells whether all expressions of a term hold. A term without any matches nothing.
func matches(term corev1.NodeSelectorTerm, name string, node map[string]string) (bool, error) {
	for _, field := range term.MatchFields {
		isIn := slices.Contains(field.Values, name)
		switch {
		case name == "" || field.Key != metav1.ObjectNameField || field.Operator != corev1.NodeSelectorOpIn && field.Operator != corev1.NodeSelectorOpNotIn:
			return false, fmt.Errorf("reading the affinity of a volume: field selectors are not supported")
		case isIn != (field.Operator == corev1.NodeSelectorOpIn):
			return false, nil
		}
	}
	for _, expression := range term.MatchExpressions {
		requirement, err := labels.NewRequirement(expression.Key, operators[expression.Operator], expression.Values)
		if err != nil {
			return false, fmt.Errorf("reading the affinity of a volume: %w", err)
		}
		if !requirement.Matches(labels.Set(node)) {
			return false, nil
		}
	}
	return len(term.MatchExpressions)+len(term.MatchFields) > 0, nil
}
