// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// cluster makes an index of nodes written as "name key=value,key=value" with the same driver keys on
// each. A name that starts with "bare" has no driver.
func cluster(keys []string, nodes ...string) *Index {
	x := NewIndex()
	for _, text := range nodes {
		name, labels, _ := strings.Cut(text, " ")
		x.SetNode(name, parse(labels))
		if !strings.HasPrefix(name, "bare") {
			x.SetDriverKeys(name, keys)
		}
	}
	return x
}

func parse(text string) map[string]string {
	labels := map[string]string{}
	for _, pair := range strings.Split(text, ",") {
		if key, value, ok := strings.Cut(pair, "="); ok {
			labels[key] = value
		}
	}
	return labels
}

// term writes an allowed term as "zone=a|b,rack=1".
func term(text string) corev1.TopologySelectorTerm {
	var t corev1.TopologySelectorTerm
	for _, part := range strings.Split(text, ",") {
		if key, values, ok := strings.Cut(part, "="); ok {
			expression := corev1.TopologySelectorLabelRequirement{Key: key}
			if values != "" {
				expression.Values = strings.Split(values, "|")
			}
			t.MatchLabelExpressions = append(t.MatchLabelExpressions, expression)
		}
	}
	return t
}

func allowed(texts ...string) (terms []corev1.TopologySelectorTerm) {
	for _, text := range texts {
		terms = append(terms, term(text))
	}
	return terms
}

func show(topologies []*csi.Topology) string {
	var all []string
	for _, t := range topologies {
		all = append(all, SegmentOf(t.GetSegments()).String())
	}
	return strings.Join(all, " ")
}

var zones = []string{"n1 zone=a", "n2 zone=b", "n3 zone=c", "n4 zone=b"}

func TestRequirement(t *testing.T) {
	zone := []string{"zone"}
	for _, c := range []struct {
		name                 string
		index                *Index
		q                    Question
		requisite, preferred string
		causes               string
	}{
		{
			name: "T79 strict: the selected node only", index: cluster(zone, zones...),
			q:         Question{Node: "n2", Options: Options{Strict: true}},
			requisite: "{zone: b}", preferred: "{zone: b}",
		},
		{
			name: "T85 strict: an allowed term may be wider than the node's", index: cluster([]string{"rack", "zone"}, "n1 zone=a,rack=1"),
			q:         Question{Node: "n1", Allowed: allowed("zone=a"), Options: Options{Strict: true}},
			requisite: "{rack: 1, zone: a}", preferred: "{rack: 1, zone: a}",
		},
		{
			name: "T79 node without allowedTopologies: the cluster, rotated to the node", index: cluster(zone, zones...),
			q:         Question{Node: "n2", Options: Options{Immediate: true}},
			requisite: "{zone: a} {zone: b} {zone: c}", preferred: "{zone: b} {zone: c} {zone: a}",
		},
		{
			name: "T79 node and allowedTopologies: the allowed ones, rotated to the node", index: cluster(zone, zones...),
			q:         Question{Node: "n3", Allowed: allowed("zone=c|a|d")},
			requisite: "{zone: a} {zone: c} {zone: d}", preferred: "{zone: c} {zone: d} {zone: a}",
		},
		{
			name: "T79 no node, allowedTopologies: rotated by the name, no node looked at", index: NewIndex(),
			q:         Question{Claim: "data-web-1", Allowed: allowed("zone=a|b|c|d")},
			requisite: "{zone: a} {zone: b} {zone: c} {zone: d}", preferred: "{zone: c} {zone: d} {zone: a} {zone: b}",
		},
		{
			name: "T79 immediate: the cluster, rotated by the name", index: cluster(zone, "n1 zone=a", "n2 zone=b", "n3 zone=c", "n4 zone=d"),
			q:         Question{Claim: "testpvcA-testset-2", Options: Options{Immediate: true}},
			requisite: "{zone: a} {zone: b} {zone: c} {zone: d}", preferred: "{zone: b} {zone: c} {zone: d} {zone: a}",
		},
		{name: "T79 immediate topology off: nothing at all", index: cluster(zone, zones...)},
		{
			name: "T82 nodes that lack a key do not count, nodes without the driver do", index: cluster(zone, "n1 zone=a", "n2 zone=b", "n3 zone=a", "n4 rack=1", "bare5 zone=c"),
			q:         Question{Node: "n1"},
			requisite: "{zone: a} {zone: b} {zone: c}", preferred: "{zone: a} {zone: b} {zone: c}",
		},
		{
			name: "T82 the same without a node", index: cluster(zone, "n1 zone=a", "n4 rack=1", "bare5 zone=c"),
			q:         Question{Claim: "x-1", Options: Options{Immediate: true}},
			requisite: "{zone: a} {zone: c}", preferred: "{zone: a} {zone: c}",
		},
		{
			name: "T80 expansion: products, overlaps once, subsets stay", index: NewIndex(),
			q:         Question{Claim: "web-3", Allowed: allowed("zone=a,rack=1|2", "zone=a|b", "zone=b", "zone=a,rack=2")},
			requisite: "{zone: a} {zone: b} {rack: 1, zone: a} {rack: 2, zone: a}", preferred: "{zone: a} {zone: b} {rack: 1, zone: a} {rack: 2, zone: a}",
		},
		{
			name: "B037 allowed terms with fewer keys than the driver's", index: cluster([]string{"host", "rack", "zone"}, "n1 zone=a,rack=1,host=h1", "n2 zone=a,rack=2,host=h2"),
			q:         Question{Node: "n1", Allowed: allowed("zone=a")},
			requisite: "{zone: a}", preferred: "{zone: a}", causes: "wider",
		},
		{
			name: "allowedTopologies that stand for nothing: no requirement", index: cluster(zone, zones...),
			q:      Question{Node: "n1", Allowed: []corev1.TopologySelectorTerm{{}, term("zone=")}},
			causes: "empty",
		},
		{
			name: "the same without a node", index: NewIndex(),
			q:      Question{Claim: "x", Allowed: []corev1.TopologySelectorTerm{{}}},
			causes: "empty",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.index.Requirement(c.q)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.causes, causes(got.Warnings)); d != "" {
				t.Error("warnings", d)
			}
			if d := cmp.Diff(c.requisite, show(got.Requirement.GetRequisite())); d != "" {
				t.Error("requisite", d)
			}
			if d := cmp.Diff(c.preferred, show(got.Requirement.GetPreferred())); d != "" {
				t.Error("preferred", d)
			}
			if c.requisite == "" && got.Requirement != nil {
				t.Error("an empty requirement is sent")
			}
		})
	}
}

func TestRequirementErrors(t *testing.T) {
	late := cluster([]string{"type", "zone"}, "n1 zone=a,other=x")
	gone := cluster([]string{"zone"}, "n1 zone=a", "n2 zone=b")
	gone.RemoveNode("n1")
	gone.RemoveCSINode("n2")
	away := cluster([]string{"zone"}, "n1 zone=a")
	away.RemoveDriver("n1")
	for _, c := range []struct {
		name       string
		index      *Index
		q          Question
		want       string
		reschedule bool
		advice     string
	}{
		{
			name: "T84 CSINode of the selected node is gone", index: gone, q: Question{Node: "n2"},
			want: `CSINode "n2" of the selected node not found`, reschedule: true,
		},
		{
			name: "W21 Node is gone, its CSINode lingers", index: gone, q: Question{Node: "n1"}, reschedule: true,
			want: `topology labels from selected node map[] does not match topology keys from CSINode [zone]: node "n1" does not exist`,
		},
		{
			name: "B039 T83 the driver is not on the node", index: away, q: Question{Node: "n1"},
			want: `no topology key found for node n1: its CSINode does not list driver "d"`,
		},
		{
			name: "B039 the driver announces no keys there", index: cluster(nil, "n1 zone=a"), q: Question{Node: "n1"},
			want: `no topology key found for node n1: its CSINode lists driver "d" without topology keys`,
		},
		{
			name: "B019 T83 a label has not arrived yet", index: late, q: Question{Node: "n1"},
			want: `topology labels from selected node map[zone:a] does not match topology keys from CSINode [type zone]: node "n1" lacks the labels [type]`,
		},
		{
			name: "T83 no CSINode has keys", index: cluster(nil, "n1 zone=a"), q: Question{Options: Options{Immediate: true}},
			want: `no available topology found: no CSINode lists topology keys of driver "d"`,
		},
		{
			name: "T83 no node has the labels", index: cluster([]string{"zone", "rack"}, "n1 zone=a"), q: Question{Options: Options{Immediate: true}},
			want: `topologyKeys [rack zone] were not found on any nodes`,
		},
		{
			name: "T85 strict and outside", index: cluster([]string{"zone"}, zones...), reschedule: true,
			q:    Question{Node: "n1", Allowed: allowed("zone=b|c"), Options: Options{Strict: true}},
			want: `selected node '"n1"' topology '{zone: a}' is not in allowed topologies: [{zone: b} {zone: c}]`,
		},
		{
			name: "strict and allowed stands for nothing", index: cluster([]string{"zone"}, zones...), reschedule: true,
			q:    Question{Node: "n1", Allowed: allowed("zone="), Options: Options{Strict: true}},
			want: `selected node '"n1"' topology '{zone: a}' is not in allowed topologies: []`,
		},
		{
			name: "B037 outside", index: cluster([]string{"zone"}, zones...), reschedule: true,
			q:    Question{Node: "n1", Allowed: allowed("zone=b")},
			want: `topology {zone: a} from selected node "n1" is not in requisite: [{zone: b}]`, advice: "let the pod run on nodes of these segments only",
		},
		{
			name: "a slip in a key", index: cluster([]string{"zone"}, zones...), reschedule: true,
			q:    Question{Node: "n1", Allowed: allowed("zome=a")},
			want: `topology {zone: a} from selected node "n1" is not in requisite: [{zome: a}]`, advice: "allowedTopologies of the class name the key zome, which the driver does not have on that node, did you mean zone?",
		},
		{
			name: "strict and a slip in a key", index: cluster([]string{"zone"}, zones...), reschedule: true,
			q:    Question{Node: "n1", Allowed: allowed("zome=a"), Options: Options{Strict: true}},
			want: `selected node '"n1"' topology '{zone: a}' is not in allowed topologies: [{zome: a}]`, advice: "did you mean zone?",
		},
		{
			name: "a class that would fill the memory", index: NewIndex(), q: Question{Allowed: allowed(huge("a")+","+huge("b"), "zone=a")},
			want: `allowedTopologies of the class stands for more than 10000 segments`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.q.Driver = "d"
			got, err := c.index.Requirement(c.q)
			if err == nil || err.Error() != c.want {
				t.Errorf("got\n%v, want\n%s", err, c.want)
			}
			if got.Requirement != nil {
				t.Error("a requirement beside an error")
			}
			if !IsTold("Failed: "+c.want+"; do this") || IsTold("Failed: the driver has no room") {
				t.Error("an event with it is not known for one about places")
			}
			var knows *Error
			if errors.As(err, &knows) && !strings.Contains(knows.Advice(), c.advice) {
				t.Errorf("advises %q, want %q", knows.Advice(), c.advice)
			}
			if IsReschedule(fmt.Errorf("error generating accessibility requirements: %w", err)) != c.reschedule {
				t.Error("wrong decision about another node")
			}
		})
	}
	late.SetNode("n1", parse("zone=a,type=ssd"))
	if got, err := late.Requirement(Question{Node: "n1"}); err != nil || show(got.Requirement.Requisite) != "{type: ssd, zone: a}" {
		t.Error("B019 T83: the label has arrived and does not count:", err)
	}
}

func huge(key string) string {
	values := make([]string, 200)
	for i := range values {
		values[i] = fmt.Sprint(i)
	}
	return key + "=" + strings.Join(values, "|")
}

func TestLongListsAreCut(t *testing.T) {
	x := cluster([]string{"zone"}, "n1 zone=a")
	_, err := x.Requirement(Question{Node: "n1", Allowed: allowed(strings.Replace(huge("zone"), "a|", "", 1))})
	if err == nil || !strings.HasSuffix(err.Error(), " and 190 more]") || len(err.Error()) > 400 {
		t.Error(err)
	}
}

func TestManySegments(t *testing.T) {
	x := NewIndex()
	for i := range MaxSegments + 5 {
		name := fmt.Sprintf("n%04d", i)
		x.SetNode(name, map[string]string{"host": name})
		x.SetDriverKeys(name, []string{"host"})
	}
	got, err := x.Requirement(Question{Node: "n1002"})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Warnings) != 1 || got.Warnings[0].Text != "the driver is asked for the first 1000 of 1005 topology segments only" {
		t.Error(got.Warnings)
	}
	if r := got.Requirement; len(r.Preferred) != MaxSegments || show(r.Preferred[:2]) != "{host: n1002} {host: n1003}" || show(r.Requisite) != show(r.Preferred) {
		t.Errorf("%d preferred, first %s", len(r.Preferred), show(r.Preferred[:2]))
	}
	for i := range 5 {
		x.RemoveNode(fmt.Sprintf("n%04d", i))
	}
	if got, err = x.Requirement(Question{Node: "n1002"}); err != nil || len(got.Warnings) > 0 || len(got.Requirement.Requisite) != MaxSegments {
		t.Error("exactly the bound is still exact", err, got.Warnings)
	}
}

func TestCallersOwnTheirLists(t *testing.T) {
	x := cluster([]string{"zone"}, zones...)
	q := Question{Node: "n2"}
	first, _ := x.Requirement(q)
	slices.Reverse(first.Requirement.Requisite)
	slices.Reverse(first.Requirement.Preferred)
	again, _ := x.Requirement(q)
	if show(again.Requirement.Requisite) != "{zone: a} {zone: b} {zone: c}" || show(again.Requirement.Preferred) != "{zone: b} {zone: c} {zone: a}" {
		t.Error(again)
	}
}

func TestStart(t *testing.T) {
	for _, c := range []struct {
		claim       string
		hash, index uint32
	}{
		{"testpvcA-testset-1", 1633848515, 1},
		{"other-testset-4", 1633848515, 4},
		{"testset-0", 1633848515, 0},
		{"data-web-2", 1181096325, 2},
		{"web", 1181096325, 0},
		{"data", 1959470013, 0},
		{"claim", 1216680299, 0},
		{"claim-4294967295", 1216680299, 4294967295},
	} {
		if hash, index := hashOf(c.claim); hash != c.hash || index != c.index {
			t.Errorf("T81 %s: %d, %d", c.claim, hash, index)
		}
	}
	for claim, want := range map[string]int{"testpvcA-testset-1": 0, "testset-2": 1, "testpvc-testset-3": 2, "testpvc-testset-4": 3} {
		if got := start(claim, 4); got != want {
			t.Errorf("T81 %s starts at %d, want %d", claim, got, want)
		}
	}
	for _, claim := range []string{"", "-", "a-", "a-4294967296", "5", "a--7", "a-+1"} {
		if got := start(claim, 3); got < 0 || got > 2 || got != start(claim, 3) {
			t.Errorf("%q starts at %d", claim, got)
		}
	}
}
