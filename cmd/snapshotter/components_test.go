// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	table "github.com/csi-tandem/csi-tandem/test/rights"
)

// TestComponentsAreThoseThatGrant: for all that deploy/pair begins without, a missing right is told with a component that
// grants it, and only with such ones. Catches a new component that no message names, and a name that helps nobody.
func TestComponentsAreThoseThatGrant(t *testing.T) {
	faults, err := table.Misnamed(table.Snapshotter, components())
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range faults {
		t.Error(fault)
	}
}
