// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// near reads segments written as "zone=a,rack=1".
func near(texts ...string) (segments []Segment) {
	for _, text := range texts {
		segments = append(segments, SegmentOf(parse(text)))
	}
	return segments
}

func TestNearComesFirst(t *testing.T) {
	four := cluster([]string{"zone"}, "n1 zone=a", "n2 zone=b", "n3 zone=c", "n4 zone=d")
	immediate := Options{Immediate: true}
	for _, c := range []struct {
		name                 string
		index                *Index
		q                    Question
		requisite, preferred string
	}{
		{
			name: "the place of the data, then the order of the replicas", index: four,
			q:         Question{Claim: "testpvcA-testset-2", Near: near("zone=d"), Options: immediate},
			requisite: "{zone: a} {zone: b} {zone: c} {zone: d}", preferred: "{zone: d} {zone: b} {zone: c} {zone: a}",
		},
		{
			name: "among several places the replicas still spread", index: four,
			q:         Question{Claim: "testpvcA-testset-3", Near: near("zone=a", "zone=d"), Options: immediate},
			requisite: "{zone: a} {zone: b} {zone: c} {zone: d}", preferred: "{zone: d} {zone: a} {zone: c} {zone: b}",
		},
		{
			name: "a place outside of allowedTopologies is not added", index: four,
			q:         Question{Claim: "testpvcA-testset-1", Near: near("zone=d"), Allowed: allowed("zone=a|b"), Options: immediate},
			requisite: "{zone: a} {zone: b}", preferred: "{zone: a} {zone: b}",
		},
		{
			name: "a place inside a wider allowed one", index: four,
			q:         Question{Claim: "testpvcA-testset-1", Near: near("zone=b,rack=1"), Allowed: allowed("zone=a|b"), Options: immediate},
			requisite: "{zone: a} {zone: b}", preferred: "{zone: b} {zone: a}",
		},
		{
			name: "the selected node wins", index: four,
			q:         Question{Node: "n3", Near: near("zone=d"), Options: immediate},
			requisite: "{zone: a} {zone: b} {zone: c} {zone: d}", preferred: "{zone: c} {zone: d} {zone: a} {zone: b}",
		},
		{
			name: "a volume that is everywhere is near to nothing", index: four,
			q:         Question{Claim: "testpvcA-testset-1", Near: near(""), Options: immediate},
			requisite: "{zone: a} {zone: b} {zone: c} {zone: d}", preferred: "{zone: a} {zone: b} {zone: c} {zone: d}",
		},
		{name: "without segments of the cluster there is no requirement to put in order", index: four, q: Question{Near: near("zone=d")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.index.Requirement(c.q)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.requisite+" | "+c.preferred, show(got.Requirement.GetRequisite())+" | "+show(got.Requirement.GetPreferred())); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestNearSurvivesTheCut(t *testing.T) {
	x := NewIndex()
	for i := range MaxSegments + 5 {
		name := fmt.Sprintf("n%04d", i)
		x.SetNode(name, map[string]string{"host": name})
		x.SetDriverKeys(name, []string{"host"})
	}
	for _, host := range []string{"n0000", "n1004"} {
		got, err := x.Requirement(Question{Claim: "data", Near: near("host=" + host), Options: Options{Immediate: true}})
		if err != nil || show(got.Requirement.GetPreferred()[:1]) != "{host: "+host+"}" || len(got.Requirement.GetRequisite()) != MaxSegments {
			t.Errorf("%s is not the first of the %d: %v", host, MaxSegments, err)
		}
	}
}

func TestSegmentsOf(t *testing.T) {
	exists := corev1.NodeSelectorRequirement{Key: "zone", Operator: corev1.NodeSelectorOpExists}
	fields := all(in("zone", "a"))
	fields.MatchFields = []corev1.NodeSelectorRequirement{in("metadata.name", "n1")}
	for _, c := range []struct {
		name     string
		affinity *corev1.VolumeNodeAffinity
		want     string
	}{
		{"none", nil, "[]"},
		{"no selector", &corev1.VolumeNodeAffinity{}, "[]"},
		{"as drivers are understood", affinity(all(in("zone", "b"), in("rack", "1")), all(in("zone", "a"))), "[{zone: a} {rack: 1, zone: b}]"},
		{"several values", affinity(all(in("zone", "a", "b"))), "[{zone: a} {zone: b}]"},
		{"another operator makes the term unreadable, and only it", affinity(all(in("zone", "a"), exists), all(in("zone", "b"))), "[{zone: b}]"},
		{"fields too", affinity(fields), "[]"},
	} {
		if got := list(SegmentsOf(c.affinity)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestParseSegments(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`[{"zone":"b"},{"zone":"a","rack":"1"},{"zone":"b"},{}]`, "[{zone: b} {rack: 1, zone: a}]"},
		{`[]`, "[]"},
		{`null`, "[]"},
		{`{"zone":"a"}`, "reading a JSON list of topology segments: "},
		{`[{"zone":1}]`, "reading a JSON list of topology segments: "},
		{``, "reading a JSON list of topology segments: "},
		{"[" + strings.TrimSuffix(strings.Repeat("{},", MaxSegments+1), ",") + "]", "reading a JSON list of topology segments: 1001 are more than 1000"},
	} {
		segments, err := ParseSegments(c.text)
		got := list(segments)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%.40s: %s, want %s", c.text, got, c.want)
		}
	}
}
