// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"testing"
)

// sizes are clusters from a workshop's to the largest.
var sizes = []int{10, 1000, 5000, 50000}

// layouts are how nodes make up segments: a few for all of them, or one for each.
var layouts = []struct {
	name string
	keys []string
}{{"zones", []string{"zone"}}, {"hosts", []string{"host"}}}

func labelsOf(i int) map[string]string {
	return map[string]string{"zone": fmt.Sprint("z", i%3), "host": fmt.Sprint("n", i), "arch": "amd64"}
}

func clusterOf(nodes int, keys []string) *Index {
	x := NewIndex()
	for i := range nodes {
		name := fmt.Sprint("n", i)
		x.SetNode(name, labelsOf(i))
		x.SetDriverKeys(name, keys)
	}
	return x
}

func eachCluster(b *testing.B, run func(b *testing.B, x *Index, nodes int)) {
	for _, layout := range layouts {
		for _, nodes := range sizes {
			b.Run(fmt.Sprintf("%s/nodes=%d", layout.name, nodes), func(b *testing.B) {
				x := clusterOf(nodes, layout.keys)
				b.ReportAllocs()
				b.ResetTimer()
				run(b, x, nodes)
			})
		}
	}
}

func question(i, nodes int) Question {
	return Question{Driver: "d", Claim: fmt.Sprint("claim-", i), Node: fmt.Sprint("n", i%nodes), Options: Options{Immediate: true}}
}

// BenchmarkRequirement is the cost of a claim with a selected node.
func BenchmarkRequirement(b *testing.B) {
	eachCluster(b, func(b *testing.B, x *Index, nodes int) {
		for i := 0; b.Loop(); i++ {
			if _, err := x.Requirement(question(i, nodes)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkHeartbeat is the cost of an update of a node that changes no label.
func BenchmarkHeartbeat(b *testing.B) {
	eachCluster(b, func(b *testing.B, x *Index, nodes int) {
		labels := labelsOf(0)
		for b.Loop() {
			x.SetNode("n0", labels)
		}
	})
}

// BenchmarkLabelNoise is the cost of a label that no driver has among its keys, and of the claim after it.
func BenchmarkLabelNoise(b *testing.B) {
	eachCluster(b, func(b *testing.B, x *Index, nodes int) {
		noise := []map[string]string{labelsOf(0), labelsOf(0)}
		noise[1]["arch"] = "arm64"
		for i := 0; b.Loop(); i++ {
			x.SetNode("n0", noise[i%2])
			if _, err := x.Requirement(question(0, nodes)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkNodeComesAndGoes is the cost of a node that is added and removed with its driver.
func BenchmarkNodeComesAndGoes(b *testing.B) {
	eachCluster(b, func(b *testing.B, x *Index, nodes int) {
		labels, keys := labelsOf(nodes), layoutKeys(x)
		for b.Loop() {
			x.SetNode("new", labels)
			x.SetDriverKeys("new", keys)
			x.RemoveCSINode("new")
			x.RemoveNode("new")
		}
	})
}

func layoutKeys(x *Index) []string { return x.lookup("n0").keys }

// A requirement must cost what there are distinct segments, however many nodes are in them; an index that walks its nodes
// for each claim allocates with their number.
func TestRequirementDoesNotGrowWithNodes(t *testing.T) {
	cost := func(nodes int) float64 {
		x := clusterOf(nodes, []string{"zone"})
		q := question(1, nodes)
		return testing.AllocsPerRun(20, func() {
			if _, err := x.Requirement(q); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := cost(10), cost(5000); many > few {
		t.Errorf("a requirement allocates %.0f times with 10 nodes and %.0f times with 5000 in the same three zones", few, many)
	}
}

// A heartbeat must cost nothing, and a label that is no topology key must not make the segments of the cluster stale: with
// a segment for each node they are sorted anew by the next claim, at every such update.
func TestNoiseCausesNoWork(t *testing.T) {
	x := clusterOf(1000, []string{"host"})
	labels := labelsOf(7)
	if allocs := testing.AllocsPerRun(20, func() { x.SetNode("n7", labels) }); allocs > 0 {
		t.Errorf("a heartbeat allocates %.0f times", allocs)
	}
	q := question(7, 1000)
	if _, err := x.Requirement(q); err != nil {
		t.Fatal(err)
	}
	all := x.everywhere("host")
	waiting := Question{Driver: "d", Claim: "c", Options: Options{Immediate: true}}
	if _, err := x.Requirement(waiting); err != nil {
		t.Fatal(err)
	}
	anywhere := x.immediate
	noisy := labelsOf(7)
	noisy["arch"] = "arm64"
	x.SetNode("n7", noisy)
	if x.everywhere("host") != all || x.immediate != anywhere || anywhere == nil {
		t.Error("a label that is no topology key made the segments stale")
	}
	moved := labelsOf(7)
	moved["host"] = "elsewhere"
	x.SetNode("n7", moved)
	if x.everywhere("host") == all || x.immediate == anywhere {
		t.Error("a topology key changed, and the segments did not")
	}
}
