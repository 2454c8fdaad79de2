// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func in(key string, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

func affinity(terms ...corev1.NodeSelectorTerm) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}
}

func all(requirements ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: requirements}
}

func TestAffinity(t *testing.T) {
	for _, c := range []struct {
		name string
		in   []*csi.Topology
		want *corev1.VolumeNodeAffinity
	}{
		{name: "T88 nothing said", want: nil},
		{name: "W20 only empty topologies", in: []*csi.Topology{{}, nil, {Segments: map[string]string{}}}, want: nil},
		{
			name: "T88 two topologies of two keys, an empty one between them",
			in: []*csi.Topology{
				{Segments: map[string]string{"zone": "a", "rack": "1"}}, {}, {Segments: map[string]string{"rack": "2", "zone": "b"}},
			},
			want: affinity(all(in("rack", "1"), in("zone", "a")), all(in("rack", "2"), in("zone", "b"))),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, Affinity(c.in)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestAccessible(t *testing.T) {
	node := map[string]string{"zone": "a", "rack": "1", "size": "5"}
	for _, c := range []struct {
		name     string
		affinity *corev1.VolumeNodeAffinity
		want     bool
		err      bool
	}{
		{name: "no affinity", want: true},
		{name: "no required part", affinity: &corev1.VolumeNodeAffinity{}, want: true},
		{name: "no term matches nothing", affinity: affinity()},
		{name: "an empty term matches nothing", affinity: affinity(all())},
		{name: "all expressions of one term", affinity: affinity(all(in("zone", "b")), all(in("zone", "a"), in("rack", "1"))), want: true},
		{name: "one expression fails", affinity: affinity(all(in("zone", "a"), in("rack", "2")))},
		{name: "label missing", affinity: affinity(all(in("host", "a")))},
		{name: "exists", affinity: affinity(all(corev1.NodeSelectorRequirement{Key: "zone", Operator: corev1.NodeSelectorOpExists})), want: true},
		{name: "greater", affinity: affinity(all(corev1.NodeSelectorRequirement{Key: "size", Operator: corev1.NodeSelectorOpGt, Values: []string{"4"}})), want: true},
		{name: "unknown operator is not a no", affinity: affinity(all(corev1.NodeSelectorRequirement{Key: "zone", Operator: "Near"})), err: true},
		{name: "fields are not a no", affinity: affinity(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{in("metadata.name", "n1")}}), err: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Accessible(c.affinity, node)
			if got != c.want || (err != nil) != c.err {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

// TestIsOutside: it is the ground on which a volume is taken for another one, and removed. Catches one that takes what it cannot tell for a yes.
func TestIsOutside(t *testing.T) {
	here := SegmentOf(map[string]string{"zone": "a", "rack": "1"})
	near := corev1.NodeSelectorRequirement{Key: "zone", Operator: "Near"}
	for _, c := range []struct {
		name     string
		affinity *corev1.VolumeNodeAffinity
		want     bool
	}{
		{"another value", affinity(all(in("zone", "b"))), true},
		{"another value in each term", affinity(all(in("zone", "b")), all(in("zone", "a"), in("rack", "2"))), true},
		{"another value, and a key that is not known", affinity(all(in("zone", "b"), in("host", "n2"))), true},
		{"here", affinity(all(in("zone", "b")), all(in("zone", "a"))), false},
		{"here, as far as is known", affinity(all(in("zone", "a"), in("host", "n2"))), false},
		{"by a key that is not known", affinity(all(in("host", "n2"))), false},
		{"in one term by a key that is not known", affinity(all(in("zone", "b")), all(in("host", "n2"))), false},
		{"no affinity", nil, false},
		{"no required part", &corev1.VolumeNodeAffinity{}, false},
		{"no term", affinity(), false},
		{"an empty term", affinity(all()), false},
		{"an operator that is not known", affinity(all(near)), false},
		{"fields", affinity(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{in("metadata.name", "n2")}}), false},
	} {
		if got := IsOutside(c.affinity, here); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
	if IsOutside(affinity(all(in("zone", "b"))), nil) {
		t.Error("it is not known where this is")
	}
}
