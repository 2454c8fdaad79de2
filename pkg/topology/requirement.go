// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
)

// MaxSegments is how many segments a requirement names. Drivers with one segment per node would else get
// every node twice in each request, which in the largest clusters exceeds what a message may hold.
const MaxSegments = 1000

// Options are the flags that steer requirements.
type Options struct {
	// Strict passes only the selected node's segment.
	Strict bool
	// Immediate passes the segments of the cluster for claims without a node.
	Immediate bool
}

// Question is what a requirement depends on, besides the nodes.
type Question struct {
	// Driver is named in errors.
	Driver string
	// Claim is the name of the claim: it decides where the preference of claims without a node starts.
	Claim string
	// Node is the selected node, or empty.
	Node string
	// Class is the name of the class, for warnings.
	Class string
	// Allowed are the allowedTopologies of the class.
	Allowed []corev1.TopologySelectorTerm
	// Near are the segments that a claim without a node should come first in: where the data of its source
	// is. They change the order of preference and nothing else.
	Near []Segment
	Options
}

// Answer is a requirement, nil when there is none to send.
type Answer struct {
	Requirement *csi.TopologyRequirement
	// Warnings tell in what the requirement is not what one would expect.
	Warnings []Warning
}

// Requirement answers where a new volume must be accessible from. The topologies in the answer are
// shared and for reading only; the lists are the caller's.
func (x *Index) Requirement(q Question) (Answer, error) {
	if q.Node != "" {
		return x.forNode(q)
	}
	if len(q.Allowed) > 0 {
		allowed, err := expand(q.Allowed)
		if err != nil {
			return Answer{}, err
		}
		if len(allowed.segments) == 0 {
			return Answer{Warnings: []Warning{standsForNothing(q)}}, nil
		}
		a := answer(allowed, start(q.Claim, len(allowed.segments)), q.Near)
		a.Warnings = append(a.Warnings, x.askedElsewhere(q, allowed.segments)...)
		return a, nil
	}
	if !q.Immediate {
		return Answer{}, nil
	}
	known, keys := x.anywhere()
	switch {
	case len(keys) == 0:
		return Answer{}, failed(NothingKnown, "no available topology found: no CSINode lists topology keys of driver %q", q.Driver)
	case len(known.segments) == 0:
		return Answer{}, failed(NothingKnown, "topologyKeys %v were not found on any nodes", keys)
	}
	return answer(known, start(q.Claim, len(known.segments)), q.Near), nil
}

func (x *Index) forNode(q Question) (Answer, error) {
	n := x.lookup(q.Node)
	own, err := selected(q, n)
	if err != nil {
		return Answer{}, err
	}
	allowed, err := expand(q.Allowed)
	if err != nil {
		return Answer{}, err
	}
	if q.Strict {
		if len(q.Allowed) > 0 && within(own, allowed.segments) < 0 {
			return Answer{}, notAllowed(q, n.keys, failed(NotAllowed, "selected node '%q' topology '%v' is not in allowed topologies: %s", q.Node, own, list(allowed.segments)))
		}
		return answer(newPlaces([]Segment{own}), 0, nil), nil
	}
	requisite := allowed
	if len(q.Allowed) == 0 {
		requisite = x.everywhere(n.setID())
	}
	if len(requisite.segments) == 0 && len(q.Allowed) > 0 {
		return Answer{Warnings: []Warning{standsForNothing(q)}}, nil
	}
	first := within(own, requisite.segments)
	if first < 0 {
		return Answer{}, notAllowed(q, n.keys, failed(NotAllowed, "topology %v from selected node %q is not in requisite: %s", own, q.Node, list(requisite.segments)))
	}
	a := answer(requisite, first, nil)
	if wide := requisite.segments[first]; len(wide) < len(own) && x.holdsMore(n, wide, own) {
		a.Warnings = append(a.Warnings, onlyWider(q, own, wide))
	}
	return a, nil
}

// holdsMore tells whether nodes of the cluster are elsewhere in a wide segment than in the node's own. Where none are, the
// driver has no other place to choose.
func (x *Index) holdsMore(n node, wide, own Segment) bool {
	return slices.ContainsFunc(x.everywhere(n.setID()).segments, func(s Segment) bool { return s.Contains(wide) && s.Compare(own) != 0 })
}

// selected is the segment of the selected node by the driver's keys there.
func selected(q Question, n node) (Segment, error) {
	switch {
	case !n.csiNode:
		return nil, failed(CSINodeMissing, "CSINode %q of the selected node not found", q.Node)
	case !n.registered:
		return nil, failed(KeysMissing, "no topology key found for node %s: its CSINode does not list driver %q", q.Node, q.Driver)
	case len(n.keys) == 0:
		return nil, failed(KeysMissing, "no topology key found for node %s: its CSINode lists driver %q without topology keys", q.Node, q.Driver)
	}
	const mismatch = "topology labels from selected node %v does not match topology keys from CSINode %v: "
	if !n.known {
		return nil, failed(NodeMissing, mismatch+"node %q does not exist", n.labels, n.keys, q.Node)
	}
	own, ok := segmentOn(n.keys, n.labels)
	if !ok {
		present, missing := split(n.keys, n.labels)
		return nil, failed(LabelsMissing, mismatch+"node %q lacks the labels %v", present, n.keys, q.Node, missing)
	}
	return own, nil
}

// within is the position of the first segment that own lies in, or -1. Segments are in order, so that where none has fewer
// labels than own only own itself will do, and is found without a walk over every node of the cluster.
func within(own Segment, segments []Segment) int {
	if len(segments) > 0 && len(segments[0]) == len(own) {
		if at, found := slices.BinarySearchFunc(segments, own, Segment.Compare); found {
			return at
		}
		return -1
	}
	return slices.IndexFunc(segments, own.Contains)
}

// answer names all places, the preferred ones beginning at first, those near before all others. Of too
// many it keeps those that come first in order of preference, so that the preferred ones stay a subset,
// as the CSI spec wants.
func answer(all *places, first int, near []Segment) Answer {
	count := len(all.segments)
	if count == 0 {
		return Answer{}
	}
	preferred := all.preferred(first, near)
	if count <= MaxSegments {
		return Answer{Requirement: &csi.TopologyRequirement{Requisite: slices.Clone(all.topologies), Preferred: preferred}}
	}
	preferred = preferred[:MaxSegments:MaxSegments]
	return Answer{
		Requirement: &csi.TopologyRequirement{Requisite: slices.Clone(preferred), Preferred: preferred},
		Warnings:    []Warning{tooManySegments(count)},
	}
}
