// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"slices"
	"testing"
)

// TestEverySortStrikes: what a plot may say is what somebody can do, and nothing that can be done is never said.
func TestEverySortStrikes(t *testing.T) {
	var said []string
	for _, s := range slices.Concat(apiSorts, driverSorts, endSorts) {
		if slices.Contains(said, s.name) {
			t.Errorf("%q is said twice", s.name)
		}
		said = append(said, s.name)
		ways := 0
		if _, ok := apiBlows[s.name]; ok {
			ways++
		}
		if _, ok := otherBlows[s.name]; ok {
			ways++
		}
		if rule, ok := (blow{what: s.name, times: 1, lasts: 1, late: 1}).rule(); ok {
			ways++
			if rule.Action == "" {
				t.Errorf("%q has no action", s.name)
			}
		}
		if ways != 1 {
			t.Errorf("%q is done in %d ways", s.name, ways)
		}
	}
	for what := range apiBlows {
		if !slices.Contains(said, what) {
			t.Errorf("%q is never said", what)
		}
	}
	for what := range otherBlows {
		if !slices.Contains(said, what) {
			t.Errorf("%q is never said", what)
		}
	}
	seen := map[string]bool{}
	for _, b := range write(1, 1000).blows {
		seen[b.what] = true
	}
	for _, what := range said {
		if !seen[what] {
			t.Errorf("%q does not happen in a thousand lives", what)
		}
	}
}
