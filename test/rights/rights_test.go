// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the manifests")

// TestManifests: each file says what the table says. Catches a right that is added by hand to one file and forgotten in another.
func TestManifests(t *testing.T) {
	for _, m := range Manifests {
		t.Run(m.Path, func(t *testing.T) {
			want, err := m.Render()
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("..", "..", filepath.FromSlash(m.Path))
			if *update {
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, want, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("not as the table has it; go test ./test/rights -update writes it (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEveryFeatureCanBeHad: each feature of a program is granted by some manifest, and not by every one. Catches a component that
// nobody wrote, and a base that has everything.
func TestEveryFeatureCanBeHad(t *testing.T) {
	for _, program := range []Program{Provisioner, Snapshotter} {
		for _, feature := range append(Complete(program).Features, Explain) {
			var in []string
			for _, m := range Manifests {
				if strings.HasPrefix(m.Path, "deploy/pair/") || strings.HasPrefix(m.Path, "deploy/components/") || strings.HasPrefix(m.Path, "deploy/node/") {
					if slices.ContainsFunc(m.Sets, func(s Set) bool { return s.Program == program && slices.Contains(s.Features, feature) }) {
						in = append(in, m.Path)
					}
				}
			}
			// Two features are for who does not use these bases: a DaemonSet with an owner, and a sidecar beside another's snapshot-controller.
			if len(in) == 0 && feature != DaemonSetsOwn && feature != Living {
				t.Errorf("%s: %s is in no base and in no component", program, feature)
			}
		}
	}
}

// TestTable: no verb of a row is written twice, none is a wildcard or one that we never use, and each row says why.
func TestTable(t *testing.T) {
	seen := map[Row]bool{}
	for _, r := range table {
		key := Row{Program: r.Program, Feature: r.Feature, Scope: r.Scope, Group: r.Group, Resource: r.Resource, Name: r.Name}
		if seen[key] {
			t.Errorf("two rows: %+v", key)
		}
		seen[key] = true
		verbs := strings.Fields(r.Verbs)
		for i, verb := range verbs {
			if !slices.Contains(order, verb) || slices.Contains(verbs[:i], verb) {
				t.Errorf("%s %s %s: verb %q", r.Program, r.Feature, r.Resource, verb)
			}
		}
		if len(verbs) == 0 || !strings.HasSuffix(r.Why, ".") {
			t.Errorf("%+v does not say what or why", r)
		}
	}
	if _, err := Rows(Of(Provisioner, "flying")); err == nil {
		t.Error("a feature that is not there was taken")
	}
}
