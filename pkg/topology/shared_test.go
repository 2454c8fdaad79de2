// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"testing"
)

// crowd is a cluster of that many nodes in three zones.
func crowd(nodes int) *Index {
	x := NewIndex()
	for i := range nodes {
		name := fmt.Sprint("n", i)
		x.SetNode(name, map[string]string{"zone": fmt.Sprint("z", i%3)})
		x.SetDriverKeys(name, []string{"zone"})
	}
	return x
}

func ask(t *testing.T, x *Index, node string) Answer {
	t.Helper()
	answer, err := x.Requirement(Question{Driver: "d", Claim: "data", Node: node, Options: Options{Immediate: true}})
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// TestClaimsDoNotCountNodes (PP-1): the segments of the cluster are known before a claim asks, so that a claim costs the same in
// a cluster of six nodes and of six hundred. Catches one that goes through all nodes for each claim.
func TestClaimsDoNotCountNodes(t *testing.T) {
	for _, node := range []string{"", "n4"} {
		small, large := crowd(6), crowd(600)
		ask(t, small, node)
		ask(t, large, node)
		few := testing.AllocsPerRun(100, func() { ask(t, small, node) })
		many := testing.AllocsPerRun(100, func() { ask(t, large, node) })
		if many > few {
			t.Errorf("with node %q: %v allocations among 6 nodes, %v among 600", node, few, many)
		}
	}
}

// TestClaimsShareTerms (PP-2): what many claims in flight are told of the same cluster is there once. Catches one that copies
// labels and terms for each of them.
func TestClaimsShareTerms(t *testing.T) {
	x := crowd(30)
	first, second := ask(t, x, "n1").Requirement, ask(t, x, "n2").Requirement
	if len(first.Requisite) != 3 || len(second.Requisite) != 3 {
		t.Fatalf("%d and %d terms", len(first.Requisite), len(second.Requisite))
	}
	for i, term := range first.Requisite {
		if term != second.Requisite[i] {
			t.Errorf("term %d was copied", i)
		}
	}
	for _, term := range first.Preferred {
		isThere := false
		for _, known := range first.Requisite {
			isThere = isThere || term == known
		}
		if !isThere {
			t.Errorf("the preferred %v is another than the requisite one", term)
		}
	}
}
