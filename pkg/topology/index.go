// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"unique"
)

// Index knows for every node its labels and the topology keys of one driver, and keeps for every set of
// keys in use the distinct segments of the cluster. It is brought up to date with every change of a
// node, so that a question costs no walk over all nodes. It may be used by many goroutines at once.
type Index struct {
	mu    sync.RWMutex
	nodes map[string]node
	sets  map[string]*keySet
	// immediate is the answer for claims without a node; nil when a change made it stale.
	immediate *places
	watchers  []func(segment Segment, exists bool)
}

// node is what is known under one node name, from two kinds of objects that come and go on their own.
type node struct {
	known      bool // the Node exists
	labels     map[string]string
	csiNode    bool // the CSINode exists
	registered bool // and lists the driver
	keys       []string
}

func (n node) setID() string { return strings.Join(n.keys, "\x00") }

// NewIndex makes an empty index.
func NewIndex() *Index {
	return &Index{nodes: map[string]node{}, sets: map[string]*keySet{}}
}

// SetNode records a Node. Most updates of nodes are heartbeats and cost one comparison. The labels are
// copied.
func (x *Index) SetNode(name string, labels map[string]string) {
	x.mu.RLock()
	old := x.nodes[name]
	x.mu.RUnlock()
	if old.known && maps.Equal(old.labels, labels) {
		return
	}
	shared := make(map[string]string, len(labels))
	for key, value := range labels {
		shared[unique.Make(key).Value()] = unique.Make(value).Value() // thousands of nodes have the same
	}
	x.change(name, func(n *node) { n.known, n.labels = true, shared })
}

// RemoveNode forgets a Node.
func (x *Index) RemoveNode(name string) {
	x.change(name, func(n *node) { n.known, n.labels = false, nil })
}

// SetDriverKeys records that the CSINode of a node lists the driver with these topology keys.
func (x *Index) SetDriverKeys(name string, keys []string) {
	// The slice belongs to an informer: sorting it in place would change what others read.
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	x.mu.RLock()
	old := x.nodes[name]
	x.mu.RUnlock()
	if old.registered && slices.Equal(old.keys, keys) {
		return
	}
	x.change(name, func(n *node) { n.csiNode, n.registered, n.keys = true, true, keys })
}

// RemoveDriver records that the CSINode of a node exists and does not list the driver.
func (x *Index) RemoveDriver(name string) {
	x.change(name, func(n *node) { n.csiNode, n.registered, n.keys = true, false, nil })
}

// RemoveCSINode forgets the CSINode of a node.
func (x *Index) RemoveCSINode(name string) {
	x.change(name, func(n *node) { n.csiNode, n.registered, n.keys = false, false, nil })
}

// Labels returns the labels of a Node, for reading only. ok is false when there is no such Node.
func (x *Index) Labels(name string) (labels map[string]string, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	n := x.nodes[name]
	return n.labels, n.known
}

// Segments returns the distinct segments in which the driver runs, in order. A driver without topology
// has one empty segment as soon as it runs anywhere.
func (x *Index) Segments() []Segment {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var segments []Segment
	for _, set := range x.sets {
		segments = set.appendWhere(segments, func(c census) bool { return c.own > 0 })
	}
	return newPlaces(segments).segments
}

func (x *Index) change(name string, apply func(*node)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.nodes[name]
	after := before
	apply(&after)
	if x.isNoise(before, after) {
		x.nodes[name] = after
		return
	}
	for _, set := range x.sets {
		set.count(before, -1)
	}
	delete(x.nodes, name)
	if before.registered {
		x.release(before)
	}
	if after.registered {
		// Made of the other nodes only; this one is counted below like in every set.
		after.keys = x.keep(after)
	}
	for _, set := range x.sets {
		set.count(after, +1)
	}
	if after.known || after.csiNode {
		x.nodes[name] = after
	}
	x.immediate = nil
	x.tell(before, after)
}

func (x *Index) release(n node) {
	set := x.sets[n.setID()]
	if set.users--; set.users == 0 {
		delete(x.sets, n.setID())
	}
}

// keep gives the keys of the set, which all nodes with these keys share.
func (x *Index) keep(n node) []string {
	set := x.sets[n.setID()]
	if set == nil {
		set = &keySet{id: n.setID(), keys: n.keys, segments: map[string]*entry{}}
		for _, other := range x.nodes {
			set.count(other, +1)
		}
		x.sets[set.id] = set
	}
	set.users++
	return set.keys
}

// everywhere returns all segments of the cluster for one set of keys.
func (x *Index) everywhere(setID string) *places {
	x.mu.RLock()
	set := x.sets[setID]
	if set == nil || set.all != nil {
		defer x.mu.RUnlock()
		if set == nil {
			return newPlaces(nil)
		}
		return set.all
	}
	x.mu.RUnlock()

	x.mu.Lock()
	defer x.mu.Unlock()
	// Between the two locks the set may have gone, when the last node with these keys left.
	if set = x.sets[setID]; set == nil {
		return newPlaces(nil)
	}
	if set.all == nil {
		set.all = newPlaces(set.appendWhere(nil, func(census) bool { return true }))
	}
	return set.all
}

// allKeys returns the keys that the driver has on any node, called under the lock.
func (x *Index) allKeys() []string {
	var keys []string
	for _, set := range x.sets {
		keys = append(keys, set.keys...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// anywhere returns the segments for a claim without a node, and the keys that they are made of. Every
// node counts with its own keys; a node on which the driver does not run counts with any keys that its
// labels have.
func (x *Index) anywhere() (*places, []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.immediate == nil {
		var segments []Segment
		for _, set := range x.sets {
			if len(set.keys) > 0 {
				segments = set.appendWhere(segments, func(c census) bool { return c.own+c.bare > 0 })
			}
		}
		x.immediate = newPlaces(segments)
	}
	return x.immediate, x.allKeys()
}

func (x *Index) lookup(name string) node {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.nodes[name]
}
