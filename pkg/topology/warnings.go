// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// Warning tells users that a requirement is not what they would expect.
type Warning struct {
	// Cause is the same for all claims that a warning concerns for the same reason, so that it can be told
	// once. It is empty for what each claim should be told.
	Cause string
	Text  string
}

func tooManySegments(count int) Warning {
	return Warning{"segments", fmt.Sprintf("the driver is asked for the first %d of %d topology segments only", MaxSegments, count)}
}

// standsForNothing: a class has allowedTopologies, and they name no segment at all. A requirement without
// any segment cannot be sent, so the driver is free, which is the opposite of what the class looks like.
func standsForNothing(q Question) Warning {
	what := "the driver may put the volume anywhere"
	if q.Node != "" {
		what += fmt.Sprintf(", also where the selected node %q cannot reach it", q.Node)
	}
	return Warning{"empty", fmt.Sprintf("allowedTopologies of class %q have terms without keys or values and name no segment: %s; give each key its values, or leave allowedTopologies out", q.Class, what)}
}

// onlyWider: allowedTopologies hold the selected node only by a segment with fewer keys than the driver
// has, so that the node's own segment is not in the request, and other nodes are elsewhere in there.
func onlyWider(q Question, own, wide Segment) Warning {
	var missing []string
	for _, pair := range own {
		if !wide.has(pair.Key) {
			missing = append(missing, pair.Key)
		}
	}
	return Warning{"wider", fmt.Sprintf(
		"the segment %v of the selected node %q is not in allowedTopologies of class %q, which name the wider %v: the driver may put the volume anywhere in there, also where that node cannot reach it; add values for %v to allowedTopologies, which can be edited in place, or use --strict-topology",
		own, q.Node, q.Class, wide, missing)}
}

func (s Segment) has(key string) bool {
	for _, pair := range s {
		if pair.Key == key {
			return true
		}
	}
	return false
}

// Misplaced tells when a finished volume cannot be reached from the node that was selected for its first
// pod, and where it can be. Without strict topology a driver is free to put it there.
func (x *Index) Misplaced(node string, accessible []*csi.Topology) (text string, misplaced bool) {
	labels, known := x.Labels(node)
	affinity := Affinity(accessible)
	if !known || affinity == nil {
		return "", false
	}
	if reachable, err := Accessible(affinity, labels); reachable || err != nil {
		return "", false
	}
	var segments []Segment
	own := map[string]string{}
	for _, topology := range accessible {
		segment := SegmentOf(topology.GetSegments())
		if len(segment) == 0 {
			continue
		}
		segments = append(segments, segment)
		for _, pair := range segment {
			if value, ok := labels[pair.Key]; ok {
				own[pair.Key] = value
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "it can be reached from %s only, and the selected node %q is in %v", list(segments), node, SegmentOf(own))
	return b.String(), true
}
