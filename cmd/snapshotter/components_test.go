// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path"
	"slices"
	"strings"
	"testing"

	table "github.com/csi-tandem/csi-tandem/test/rights"
)

// TestComponentsAreThoseThatGrant: for all that deploy/pair begins without, a missing right is told with a component that
// grants it, and only with such ones. Catches a new component that no message names, and a name that helps nobody.
func TestComponentsAreThoseThatGrant(t *testing.T) {
	grants := map[string][]string{}
	base := map[string]bool{}
	for _, m := range table.Manifests {
		rows, err := table.Rows(m.Sets...)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			switch dir := path.Dir(m.Path); {
			case row.Program != table.Snapshotter:
			case dir == "deploy/pair":
				base[row.Resource] = true
			case strings.HasPrefix(dir, "deploy/components/") && row.Feature != table.Explain && m.Account == table.Pair:
				grants[row.Resource] = append(grants[row.Resource], dir)
			}
		}
	}
	told := components()
	for resource, dirs := range grants {
		if told[resource] == "" && !base[resource] {
			t.Errorf("%s: no message names any of %v", resource, dirs)
		}
	}
	for resource, text := range told {
		for dir := range strings.SplitSeq(text, " or ") {
			if !slices.Contains(grants[resource], dir) {
				t.Errorf("%s: %s does not grant it, only %v", resource, dir, grants[resource])
			}
		}
	}
}
