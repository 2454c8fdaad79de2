// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/spelling"
)

// misspelt finds a key of allowedTopologies that is none of the driver's, and the one of those that is meant most
// probably. A key that is like none of them may be a label of somebody else's, and is not spoken of.
func misspelt(terms []corev1.TopologySelectorTerm, keys []string) (key, meant string) {
	for _, term := range terms {
		for _, expression := range term.MatchLabelExpressions {
			if slices.Contains(keys, expression.Key) {
				continue
			}
			if near := spelling.Nearest(expression.Key, keys); near != "" {
				return expression.Key, near
			}
		}
	}
	return "", ""
}

// notAllowed is about a node outside of allowedTopologies. Where those have a key that no node has, no other node is inside either.
func notAllowed(q Question, keys []string, err *Error) *Error {
	if key, meant := misspelt(q.Allowed, keys); key != "" {
		err.advice = fmt.Sprintf("allowedTopologies of the class name the key %s, which the driver does not have on that node, did you mean %s? correct it in the class, which can be edited in place", key, meant)
	}
	return err
}

// Outside tells that a node is outside of allowedTopologies, and what is wrong with their words, empty where nothing is known to be.
func Outside(err error) (slip string, outside bool) {
	var e *Error
	if !errors.As(err, &e) || e.Reason != NotAllowed {
		return "", false
	}
	return e.advice, true
}

// surveyed bounds how many pairs of segments are compared for the sake of a warning.
const surveyed = 1 << 16

// askedElsewhere: without a selected node allowedTopologies are sent as they are, and all that is heard of a slip in them is that the driver has
// no room there. A key with a slip is told with each claim, as each fails. Places without a node are told of once, since they may be meant.
func (x *Index) askedElsewhere(q Question, allowed []Segment) []Warning {
	known, keys := x.anywhere()
	if key, meant := misspelt(q.Allowed, keys); key != "" {
		return []Warning{{Text: fmt.Sprintf(
			"allowedTopologies of class %q name the key %s, which the driver has on no node, did you mean %s? the driver is asked for a volume at a place where no node is; correct it in the class, which can be edited in place",
			q.Class, key, meant)}}
	}
	if len(known.segments) == 0 || len(allowed)*len(known.segments) > surveyed {
		return nil
	}
	for _, place := range allowed {
		for _, pair := range place {
			if !slices.Contains(keys, pair.Key) {
				return nil // a label of somebody else's, of which this knows nothing
			}
		}
		if within(place, known.segments) >= 0 || slices.ContainsFunc(known.segments, func(s Segment) bool { return s.Contains(place) }) {
			return nil
		}
	}
	return []Warning{{"no node", fmt.Sprintf(
		"allowedTopologies of class %q name %s, and no node is there: the driver is asked for a volume at a place without one; correct the values in the class, which can be edited in place, unless nodes are to come",
		q.Class, list(allowed))}}
}
