// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

func term(expressions ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: expressions}
}

func oneOf(key string, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

func at(terms ...corev1.NodeSelectorTerm) *corev1.PersistentVolume {
	v := in().Volume
	v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}
	return v
}

func TestBuildSourceTopology(t *testing.T) {
	exists := corev1.NodeSelectorRequirement{Key: "disk", Operator: corev1.NodeSelectorOpExists}
	for _, c := range []struct {
		name   string
		volume *corev1.PersistentVolume
		want   string
	}{
		{"a volume that is everywhere", in().Volume, ""},
		{"an affinity without terms", at(), ""},
		{"one place", at(term(oneOf("zone", "a"))), `[{"zone":"a"}]`},
		{"two labels are one place", at(term(oneOf("zone", "a"), oneOf("rack", "r1"))), `[{"rack":"r1","zone":"a"}]`},
		{"terms are alternatives, sorted and each once", at(term(oneOf("zone", "b")), term(oneOf("zone", "a")), term(oneOf("zone", "b"))),
			`[{"zone":"a"},{"zone":"b"}]`},
		{"several values are several places", at(term(oneOf("zone", "b", "a"), oneOf("rack", "r"))), `[{"rack":"r","zone":"a"},{"rack":"r","zone":"b"}]`},
		{"one key twice has to agree", at(term(oneOf("zone", "a", "b"), oneOf("zone", "b", "c"))), `[{"zone":"b"}]`},
		{"what is no segment is left out whole", at(term(oneOf("zone", "a"), exists), term(oneOf("zone", "c"))), `[{"zone":"c"}]`},
		{"nothing but what is no segment", at(term(exists)), ""},
		{"fields are no labels", at(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{oneOf("zone", "a")},
			MatchFields: []corev1.NodeSelectorRequirement{oneOf("metadata.name", "n")}}), ""},
		{"an empty term matches nothing", at(term()), ""},
		{"values that need care", at(term(oneOf("zone", `a"<b`))), `[{"zone":"a\"\u003cb"}]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, BuildSourceTopology(c.volume)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSourceTopologyIsBounded(t *testing.T) {
	var many []corev1.NodeSelectorTerm
	for i := range 5000 {
		many = append(many, term(oneOf("zone", fmt.Sprintf("z%04d", i))))
	}
	if got := BuildSourceTopology(at(many...)); strings.Count(got, "zone") != maxPlaces || !strings.Contains(got, `[{"zone":"z0000"},`) {
		t.Errorf("%d places", strings.Count(got, "zone"))
	}
	long := strings.Repeat("x", 60)
	var wide []corev1.NodeSelectorRequirement
	for i := range 12 {
		wide = append(wide, oneOf(fmt.Sprint("k", i), long+"a", long+"b", long+"c"))
	}
	got := BuildSourceTopology(at(term(wide...)))
	if len(got) > maxPlaceBytes || !strings.Contains(got, long) {
		t.Errorf("%d bytes", len(got))
	}
	if got := BuildSourceTopology(at(term(oneOf("zone", strings.Repeat("y", maxPlaceBytes))))); got != "" {
		t.Errorf("one place that is too long for the annotation: %d bytes", len(got))
	}
}

func TestContentSaysWhereItsSourceIs(t *testing.T) {
	i := in(held)
	i.Volume = at(term(oneOf("zone", "a")))
	step, ok := NextSnapshotStep(i).(CreateContent)
	if !ok || step.Content.Annotations[wellknown.AnnSourceTopology] != `[{"zone":"a"}]` {
		t.Errorf("%+v", step.Content)
	}
	step, ok = NextSnapshotStep(in(held)).(CreateContent)
	if _, has := step.Content.Annotations[wellknown.AnnSourceTopology]; !ok || has {
		t.Errorf("a volume that is everywhere: %+v", step.Content)
	}
}
