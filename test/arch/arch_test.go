// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"os"
	"testing"
	"testing/fstest"
)

const root = "../.."

// TestHouse holds every rule against the repository as it stands.
func TestHouse(t *testing.T) {
	tree, err := Load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Files) == 0 {
		t.Fatal("there is no Go file to judge")
	}
	for _, rule := range Rules() {
		t.Run(rule.Name, func(t *testing.T) {
			for _, f := range sorted(rule.Check(tree)) {
				t.Error(f)
			}
		})
	}
}

// TestRulesAreProved: a rule that no row below makes complain is a rule that may never complain.
func TestRulesAreProved(t *testing.T) {
	proved := map[string]bool{}
	for _, rows := range [][]proof{arrowProofs, banProofs, shapeProofs, nameProofs, textProofs, paperProofs, metricProofs} {
		for _, p := range rows {
			if p.want != "" {
				proved[p.rule] = true
			}
		}
	}
	for _, rule := range Rules() {
		if !proved[rule.Name] {
			t.Errorf("rule %s has no wrong tree that it complains of", rule.Name)
		}
	}
}

// proof is a small tree and what one rule says to it. Nothing wanted means that the rule must be silent.
type proof struct {
	name string
	rule string
	file string
	src  string
	want string
}

// prove runs rows; a row wants its words in exactly one finding.
func prove(t *testing.T, rows []proof) {
	t.Helper()
	rules := map[string]Rule{}
	for _, r := range Rules() {
		rules[r.Name] = r
	}
	for _, row := range rows {
		t.Run(row.rule+"/"+row.name, func(t *testing.T) {
			tree, err := Load(fstest.MapFS{row.file: {Data: []byte(row.src)}})
			if err != nil {
				t.Fatal(err)
			}
			rule, ok := rules[row.rule]
			if !ok {
				t.Fatalf("no rule is called %q", row.rule)
			}
			expect(t, rule.Check(tree), row.want)
		})
	}
}
