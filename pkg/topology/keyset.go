// SPDX-License-Identifier: Apache-2.0

package topology

// keySet is the cluster as seen through one set of topology keys. Drivers on all nodes usually announce
// the same keys; during an update of the driver there may be two sets, or a few.
type keySet struct {
	id       string
	keys     []string
	users    int // nodes that announce these keys
	segments map[string]*entry
	all      *places // nil when a change made it stale
}

type entry struct {
	segment Segment
	census  census
}

// census counts the nodes of a segment by what the driver says there.
type census struct {
	own     int // announces these keys
	bare    int // does not run, or announces none
	foreign int // announces other keys
}

func (c census) empty() bool { return c.own == 0 && c.bare == 0 && c.foreign == 0 }

// count adds a node to its segment, or takes it away.
func (s *keySet) count(n node, by int) {
	if !n.known {
		return
	}
	segment, ok := segmentOn(s.keys, n.labels)
	if !ok {
		return
	}
	id := segment.id()
	e := s.segments[id]
	if e == nil {
		e = &entry{segment: segment}
		s.segments[id] = e
		s.all = nil
	}
	switch {
	case n.registered && n.setID() == s.id:
		e.census.own += by
	case len(n.keys) == 0:
		e.census.bare += by
	default:
		e.census.foreign += by
	}
	if e.census.empty() {
		delete(s.segments, id)
		s.all = nil
	}
}

func (s *keySet) appendWhere(segments []Segment, wanted func(census) bool) []Segment {
	for _, e := range s.segments {
		if wanted(e.census) {
			segments = append(segments, e.segment)
		}
	}
	return segments
}
