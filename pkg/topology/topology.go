// SPDX-License-Identifier: Apache-2.0

// Package topology owns the one model of where volumes can be: segments of labels, the index of nodes
// that says which segments exist, the requirement that a claim puts on a new volume, and the affinity
// that the finished volume puts on its nodes.
//
// It must not know how nodes are watched, what a claim is beyond its name, or what is done about an
// error; it says only whether another node would help.
//
// In the walks it is fed by kube with nodes and their drivers, and asked by provision for every new
// volume and by capacity for the segments that exist. Both get the same answer from the same index.
package topology

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// Pair is one label of a segment.
type Pair struct{ Key, Value string }

// Segment is a set of labels that nodes share, sorted by key. It is never changed once made, so that it
// may be handed around freely. The empty segment is everywhere.
type Segment []Pair

// SegmentOf makes a segment of labels.
func SegmentOf(labels map[string]string) Segment {
	segment := make(Segment, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		segment = append(segment, Pair{key, labels[key]})
	}
	return segment
}

// segmentOn is the segment that a node with these labels is in, as seen by a driver with these sorted
// keys. It does not exist when a label is missing.
func segmentOn(keys []string, labels map[string]string) (Segment, bool) {
	segment := make(Segment, 0, len(keys))
	for _, key := range keys {
		value, ok := labels[key]
		if !ok {
			return nil, false
		}
		segment = append(segment, Pair{key, value})
	}
	return segment, true
}

// Compare orders segments by number of labels, then label by label.
func (s Segment) Compare(other Segment) int {
	if c := cmp.Compare(len(s), len(other)); c != 0 {
		return c
	}
	return slices.CompareFunc(s, other, func(a, b Pair) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value))
	})
}

// Contains tells that a node of segment s is also in the wider segment other.
func (s Segment) Contains(other Segment) bool {
	for _, pair := range other {
		if !slices.Contains(s, pair) {
			return false
		}
	}
	return true
}

// Labels are the segment as the maps of CSI and Kubernetes want it.
func (s Segment) Labels() map[string]string {
	labels := make(map[string]string, len(s))
	for _, pair := range s {
		labels[pair.Key] = pair.Value
	}
	return labels
}

// String is the segment for people.
func (s Segment) String() string {
	var b strings.Builder
	b.WriteByte('{')
	for i, pair := range s {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(pair.Key + ": " + pair.Value)
	}
	b.WriteByte('}')
	return b.String()
}

// id is the segment as a map key. Labels cannot hold the separators.
func (s Segment) id() string {
	var b strings.Builder
	for _, pair := range s {
		b.WriteString(pair.Key + "\x00" + pair.Value + "\x01")
	}
	return b.String()
}

func (s Segment) topology() *csi.Topology { return &csi.Topology{Segments: s.Labels()} }

// places is an ordered list of distinct segments with the form that is sent. Both slices are shared by
// all requirements made of them: whoever returns them to a caller returns a copy.
type places struct {
	segments   []Segment
	topologies []*csi.Topology
}

// newPlaces sorts and drops duplicates. It takes the slice over.
func newPlaces(segments []Segment) *places {
	slices.SortFunc(segments, Segment.Compare)
	segments = slices.CompactFunc(segments, func(a, b Segment) bool { return a.Compare(b) == 0 })
	p := &places{segments: segments, topologies: make([]*csi.Topology, 0, len(segments))}
	for _, segment := range segments {
		p.topologies = append(p.topologies, segment.topology())
	}
	return p
}
