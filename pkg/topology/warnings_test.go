// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func causes(warnings []Warning) string {
	var all []string
	for _, w := range warnings {
		all = append(all, w.Cause)
	}
	return strings.Join(all, " ")
}

// The sentences stand in events: each says what was found, what was expected, and what would help.
func TestWarningTexts(t *testing.T) {
	racks := cluster([]string{"rack", "zone"}, "n1 zone=a,rack=1", "n2 zone=a,rack=2", "n3 zone=b,rack=3", "n4 zone=b,rack=3", "bare zone=b")
	for _, c := range []struct {
		name string
		q    Question
		want []Warning
	}{
		{"the node's segment is there only as part of a wider one", Question{Class: "fast", Node: "n1", Allowed: allowed("zone=a")}, []Warning{{"wider",
			`the segment {rack: 1, zone: a} of the selected node "n1" is not in allowedTopologies of class "fast", which name the wider {zone: a}: the driver may put the volume anywhere in there, also where that node cannot reach it; add values for [rack] to allowedTopologies, which can be edited in place, or use --strict-topology`}}},
		{"strict asks for the node's own", Question{Class: "fast", Node: "n1", Allowed: allowed("zone=a"), Options: Options{Strict: true}}, nil},
		{"it is there itself", Question{Class: "fast", Node: "n1", Allowed: allowed("zone=a,rack=1|2")}, nil},
		{"nobody is anywhere else in the wider one", Question{Class: "fast", Node: "n3", Allowed: allowed("zone=b")}, nil},
		{"no allowedTopologies", Question{Class: "fast", Node: "n1"}, nil},
		{"they name nothing", Question{Class: "fast", Node: "n1", Allowed: []corev1.TopologySelectorTerm{{}}}, []Warning{{"empty",
			`allowedTopologies of class "fast" have terms without keys or values and name no segment: the driver may put the volume anywhere, also where the selected node "n1" cannot reach it; give each key its values, or leave allowedTopologies out`}}},
		{"nor without a node", Question{Class: "fast", Allowed: allowed("zone=")}, []Warning{{"empty",
			`allowedTopologies of class "fast" have terms without keys or values and name no segment: the driver may put the volume anywhere; give each key its values, or leave allowedTopologies out`}}},
		{"a slip in a key, and the driver alone would say that it has no room", Question{Class: "fast", Allowed: allowed("zome=a|b")}, []Warning{{"",
			`allowedTopologies of class "fast" name the key zome, which the driver has on no node, did you mean zone? the driver is asked for a volume at a place where no node is; correct it in the class, which can be edited in place`}}},
		{"a slip in a value", Question{Class: "fast", Allowed: allowed("zone=z|y")}, []Warning{{"no node",
			`allowedTopologies of class "fast" name [{zone: y} {zone: z}], and no node is there: the driver is asked for a volume at a place without one; correct the values in the class, which can be edited in place, unless nodes are to come`}}},
		{"a slip in one value of two, and the other will do", Question{Class: "fast", Allowed: allowed("zone=z|a")}, nil},
		{"each value is somewhere, and no node has both", Question{Class: "fast", Allowed: allowed("zone=a,rack=3")}, []Warning{{"no node",
			`allowedTopologies of class "fast" name [{rack: 3, zone: a}], and no node is there: the driver is asked for a volume at a place without one; correct the values in the class, which can be edited in place, unless nodes are to come`}}},
		{"a key of somebody else's", Question{Class: "fast", Allowed: allowed("hall=a", "zone=a")}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := racks.Requirement(c.q)
			if d := cmp.Diff(c.want, got.Warnings); d != "" || err != nil {
				t.Error(err, d)
			}
		})
	}
}

func TestMisplaced(t *testing.T) {
	x := cluster([]string{"zone"}, "n1 zone=a,other=x", "n2 zone=b")
	at := func(texts ...string) (all []*csi.Topology) {
		for _, text := range texts {
			all = append(all, &csi.Topology{Segments: parse(text)})
		}
		return all
	}
	for _, c := range []struct {
		name, node string
		at         []*csi.Topology
		want       string
	}{
		{"at the node", "n1", at("zone=a"), ""},
		{"in one of several places", "n1", at("zone=b", "zone=a"), ""},
		{"elsewhere", "n1", at("zone=b", "", "zone=c"), `it can be reached from [{zone: b} {zone: c}] only, and the selected node "n1" is in {zone: a}`},
		{"by a label that the node has not", "n1", at("rack=1"), `it can be reached from [{rack: 1}] only, and the selected node "n1" is in {}`},
		{"everywhere", "n1", nil, ""},
		{"a node that is gone says nothing", "n9", at("zone=b"), ""},
		{"a label that is none", "n1", at("a b=c"), ""},
	} {
		got, misplaced := x.Misplaced(c.node, c.at)
		if got != c.want || misplaced != (c.want != "") {
			t.Errorf("%s: %q, %t", c.name, got, misplaced)
		}
	}
}

// Each reason has its advice, so that no error leaves its reader without one.
func TestEveryReasonHasAdvice(t *testing.T) {
	for reason := CSINodeMissing; reason <= TooMany; reason++ {
		if failed(reason, "x").Advice() == "" {
			t.Errorf("reason %d has none", reason)
		}
	}
}
