// SPDX-License-Identifier: Apache-2.0

package topology

import "slices"

// Watch tells of every segment in which the driver runs: of those that there are, and from then on of each
// that comes or goes, in order. It is told under the lock of the index, so whoever is told must neither
// wait nor ask the index.
func (x *Index) Watch(tell func(segment Segment, exists bool)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, set := range x.sets {
		for _, e := range set.segments {
			if e.census.own > 0 {
				tell(e.segment, true)
			}
		}
	}
	x.watchers = append(x.watchers, tell)
}

// Registered counts the nodes whose CSINode lists the driver, and gives the keys that it has there.
func (x *Index) Registered() (nodes int, keys []string) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, set := range x.sets {
		nodes += set.users
		keys = append(keys, set.keys...)
	}
	slices.Sort(keys)
	return nodes, slices.Compact(keys)
}

// NodeSegment is the segment that a node is in for the driver that runs on it.
func (x *Index) NodeSegment(name string) (Segment, bool) { return x.lookup(name).segment() }

// segment is where the driver runs by this node; it does not before both objects and all labels are there.
func (n node) segment() (Segment, bool) {
	if !n.known || !n.registered {
		return nil, false
	}
	return segmentOn(n.keys, n.labels)
}

// tell passes on what a change of one node has made of the segments, when all of it has been counted. A
// segment has the keys that it was made of, so it is in one set only.
func (x *Index) tell(before, after node) {
	if len(x.watchers) == 0 {
		return
	}
	was, did := before.segment()
	is, does := after.segment()
	if did && does && was.Compare(is) == 0 {
		return
	}
	if did && x.runs(before, was) == 0 {
		x.notify(was, false)
	}
	if does && x.runs(after, is) == 1 {
		x.notify(is, true)
	}
}

// runs counts the nodes of a segment on which the driver announces the keys of this node.
func (x *Index) runs(n node, segment Segment) int {
	set := x.sets[n.setID()]
	if set == nil {
		return 0
	}
	if e := set.segments[segment.id()]; e != nil {
		return e.census.own
	}
	return 0
}

func (x *Index) notify(segment Segment, exists bool) {
	for _, tell := range x.watchers {
		tell(segment, exists)
	}
}
