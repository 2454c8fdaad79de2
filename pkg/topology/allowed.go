// SPDX-License-Identifier: Apache-2.0

package topology

import corev1 "k8s.io/api/core/v1"

// maxExpansion bounds the product of the values in one class: a few expressions with many values each
// would fill the memory.
const maxExpansion = 10000

// expand turns allowedTopologies into segments: for each term all combinations of one value per key. A
// term without expressions, or with a key without values, stands for nothing.
func expand(terms []corev1.TopologySelectorTerm) (*places, error) {
	var segments []Segment
	for _, term := range terms {
		combinations, err := combine(term)
		if err != nil {
			return nil, err
		}
		if segments = append(segments, combinations...); len(segments) > maxExpansion {
			return nil, tooMany()
		}
	}
	return newPlaces(segments), nil
}

func combine(term corev1.TopologySelectorTerm) ([]Segment, error) {
	if len(term.MatchLabelExpressions) == 0 {
		return nil, nil
	}
	combinations := []map[string]string{{}}
	for _, expression := range term.MatchLabelExpressions {
		if len(combinations)*len(expression.Values) > maxExpansion {
			return nil, tooMany()
		}
		combinations = multiply(combinations, expression)
	}
	segments := make([]Segment, 0, len(combinations))
	for _, labels := range combinations {
		segments = append(segments, SegmentOf(labels))
	}
	return segments, nil
}

// multiply gives every combination every value of one more key. Two expressions on the same key must
// both hold, so values that contradict each other are dropped.
func multiply(combinations []map[string]string, expression corev1.TopologySelectorLabelRequirement) []map[string]string {
	var product []map[string]string
	for _, labels := range combinations {
		for _, value := range expression.Values {
			if earlier, ok := labels[expression.Key]; ok && earlier != value {
				continue
			}
			product = append(product, with(labels, expression.Key, value))
		}
	}
	return product
}

func with(labels map[string]string, key, value string) map[string]string {
	more := make(map[string]string, len(labels)+1)
	for k, v := range labels {
		more[k] = v
	}
	more[key] = value
	return more
}

func tooMany() *Error {
	return failed(TooMany, "allowedTopologies of the class stands for more than %d segments", maxExpansion)
}
