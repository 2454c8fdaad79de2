// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"strings"
	"testing"
)

// drawn writes a tree in one line: key=value(below, below).
func drawn(branches []*Branch) string {
	var parts []string
	for _, b := range branches {
		below := drawn(b.Branches)
		if below == "" {
			below = strings.Join(b.Nodes, " ")
		}
		if b.Placed != (len(b.Nodes) > 0 && b.Value != unlabelled) {
			below += " placed: " + b.Segment
		}
		parts = append(parts, b.Key+"="+b.Value+"("+below+")")
	}
	return strings.Join(parts, ", ")
}

func TestTree(t *testing.T) {
	x := NewIndex()
	if got := x.Tree(); len(got) != 0 {
		t.Errorf("of nothing: %s", drawn(got))
	}
	for name, labels := range map[string]map[string]string{
		"n1": {"a-zone": "z1", "region": "r1"}, "n2": {"a-zone": "z2", "region": "r1"}, "n3": {"a-zone": "z1", "region": "r1"},
		"n4": {"a-zone": "z3", "region": "r2"}, "n5": {"region": "r2"}, "n6": {}, "n7": {},
	} {
		x.SetNode(name, labels)
		x.SetDriverKeys(name, []string{"region", "a-zone"})
	}
	x.RemoveDriver("n6")
	x.SetDriverKeys("n7", nil)
	x.SetDriverKeys("n8", []string{"region"}) // a CSINode without its Node
	// Regions come first although zones come first in the alphabet: there are fewer of them.
	want := "=(n7), region=r1(a-zone=z1(n1 n3), a-zone=z2(n2)), region=r2(a-zone=(no such label)(n5), a-zone=z3(n4))"
	if got := drawn(x.Tree()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// The segment is that of the capacities, whose keys are in the order of the alphabet.
	if got := x.Tree()[1].Branches[0].Segment; got != "{a-zone: z1, region: r1}" {
		t.Errorf("the segment of n1 is %s", got)
	}
	if got := x.Tree()[0].Segment; got != "{}" {
		t.Errorf("the segment of n7 is %s", got)
	}
}
