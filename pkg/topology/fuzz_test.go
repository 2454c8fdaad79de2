// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// expectRequirement is what holds for every answer: the preferred segments are the requisite ones, none is
// named twice, and strict topology names exactly one.
func expectRequirement(t *testing.T, q Question, a Answer, err error) {
	t.Helper()
	requirement := a.Requirement
	switch {
	case err != nil:
		if requirement != nil || err.Error() == "" {
			t.Errorf("a requirement beside an error, or no text: %v", err)
		}
		return
	case requirement == nil:
		return
	case len(requirement.GetRequisite()) == 0:
		t.Error("an empty requirement is sent")
	case q.Strict && q.Node != "" && len(requirement.GetRequisite()) != 1:
		t.Errorf("strict topology asks for %d segments", len(requirement.GetRequisite()))
	}
	requisite, preferred := texts(requirement.GetRequisite()), texts(requirement.GetPreferred())
	slices.Sort(requisite)
	slices.Sort(preferred)
	if d := cmp.Diff(requisite, preferred); d != "" {
		t.Error("requisite and preferred name different segments", d)
	}
	if n := len(slices.Compact(preferred)); n != len(requisite) {
		t.Errorf("%d of %d segments are named twice", len(requisite)-n, len(requisite))
	}
}

func texts(topologies []*csi.Topology) (all []string) {
	for _, topology := range topologies {
		all = append(all, SegmentOf(topology.GetSegments()).id())
	}
	return all
}

// FuzzRequirement: whatever nodes, classes and hints say, the answer is a requirement that CSI allows or an
// error, the same each time, and hints change nothing but the order.
func FuzzRequirement(f *testing.F) {
	f.Add("zone", "a", "b", "zone", "a", "n1", "data-web-0", `[{"zone":"b"}]`)
	f.Add("", "", "", "rack", "", "", "-", "[{}]")
	f.Add("zone", "a", "a", "rack", "1", "n2", "data-web-4294967295", `[{"rack":"1","zone":"x"}]`)
	f.Fuzz(func(t *testing.T, key, value, second, allowedKey, allowedValue, node, claim, near string) {
		x := NewIndex()
		x.SetNode("n1", map[string]string{key: value, allowedKey: allowedValue})
		x.SetNode("n2", map[string]string{key: second})
		x.SetDriverKeys("n1", []string{key, allowedKey})
		x.SetDriverKeys("n2", []string{key})
		terms := []corev1.TopologySelectorTerm{{}, {MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
			{Key: allowedKey, Values: []string{allowedValue, value}}, {Key: key, Values: []string{value, second}},
		}}}
		hint, _ := ParseSegments(near)
		for n := range 16 {
			q := Question{Driver: "d", Claim: claim, Node: node, Class: "c", Options: Options{Strict: n&1 != 0, Immediate: n&2 != 0}}
			if n&4 != 0 {
				q.Allowed = terms[:1+n&1]
			}
			plain, err := x.Requirement(q)
			expectRequirement(t, q, plain, err)
			again, errAgain := x.Requirement(q)
			if d := cmp.Diff(texts(plain.Requirement.GetPreferred()), texts(again.Requirement.GetPreferred())); d != "" || (err == nil) != (errAgain == nil) {
				t.Error("the second answer is another one", d)
			}
			q.Near = hint
			hinted, err := x.Requirement(q)
			expectRequirement(t, q, hinted, err)
			if d := cmp.Diff(texts(plain.Requirement.GetRequisite()), texts(hinted.Requirement.GetRequisite())); d != "" {
				t.Error("a hint has changed what is allowed", d)
			}
		}
	})
}

// FuzzAffinity: what a driver says about a place becomes an affinity that can be read back, or none.
func FuzzAffinity(f *testing.F) {
	f.Add("zone", "a", "rack", "1", "zone", "b", "In")
	f.Add("", "", "", "", "a/b/c", "é", "Exists")
	f.Add("size", "5", "size", "4", "size", "x", "Gt")
	f.Fuzz(func(t *testing.T, key, value, second, other, label, labelled, operator string) {
		accessible := []*csi.Topology{nil, {}, {Segments: map[string]string{key: value, second: other}}, {Segments: map[string]string{key: other}}}
		node := map[string]string{label: labelled, key: value}
		got := Affinity(accessible)
		if d := cmp.Diff(got, Affinity(accessible)); d != "" {
			t.Error("the second affinity is another one", d)
		}
		if terms := got.Required.NodeSelectorTerms; len(terms) != 2 || len(terms[0].MatchExpressions) == 0 {
			t.Errorf("two places became %v", terms)
		}
		for _, segment := range SegmentsOf(got) {
			if !slices.Contains(texts(accessible), segment.id()) {
				t.Errorf("%v is read back and was never said", segment)
			}
		}
		isLabel := len(validation.IsQualifiedName(key)) == 0 && len(validation.IsQualifiedName(second)) == 0 &&
			len(validation.IsValidLabelValue(value)) == 0 && len(validation.IsValidLabelValue(other)) == 0
		at := map[string]string{key: value, second: other}
		if reachable, err := Accessible(got, at); isLabel && (err != nil || !reachable) {
			t.Errorf("a node at the place cannot reach it: %v", err)
		}
		odd := affinity(all(corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOperator(operator), Values: []string{value}}))
		if reachable, err := Accessible(odd, node); err != nil && reachable {
			t.Error("reachable beside an error")
		}
		x := NewIndex()
		x.SetNode("n1", node)
		if text, misplaced := x.Misplaced("n1", accessible); misplaced == (text == "") {
			t.Errorf("misplaced %t and %q", misplaced, text)
		}
	})
}

// FuzzParseSegments: an annotation gives segments, none of them empty or twice, or an error.
func FuzzParseSegments(f *testing.F) {
	f.Add(`[{"zone":"b"},{"zone":"a","rack":"1"},{}]`)
	f.Add(`[{"zone":1}]`)
	f.Add(`null`)
	f.Add(`[{"":""},{"a":"b","a":"c"}]`)
	f.Fuzz(func(t *testing.T, text string) {
		segments, err := ParseSegments(text)
		if err != nil {
			if segments != nil {
				t.Error("segments beside an error")
			}
			return
		}
		var list []map[string]string
		for i, segment := range segments {
			if len(segment) == 0 || i > 0 && segments[i-1].Compare(segment) >= 0 {
				t.Errorf("%v are not in order", segments)
			}
			list = append(list, segment.Labels())
		}
		written, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := ParseSegments(string(written)); err != nil || len(again) != len(segments) {
			t.Errorf("%s is read back as %v, %v", written, again, err)
		}
	})
}
