// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"testing"
)

// TestBudgets plays all phases with many objects at once, as the programs of this checkout are built, and compares what the
// API server wrote down, and what the driver was asked, with the budgets. A driver that seems to take more than a second, as
// on a machine that has other things to do, costs an event more, which is why a run that is over may be repeated once: what
// costs too much by design does so each time.
func TestBudgets(t *testing.T) {
	if os.Getenv("CSI_TANDEM_E2E") != "1" {
		t.Skip("starts a control plane and both sidecars; set CSI_TANDEM_E2E=1, or run make e2e")
	}
	var faults []string
	for range 2 {
		if faults = measureBudgets(t); len(faults) == 0 {
			return
		}
		t.Logf("over budget in this run: %q", faults)
	}
	for _, fault := range faults {
		t.Error(fault)
	}
}

func measureBudgets(t *testing.T) []string {
	o := newOptions()
	o.objects = 150
	b, err := open(t.Context(), o, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	result, err := b.phases(t.Context())
	if err != nil {
		t.Log(b.lastWords())
	}
	if err = errors.Join(err, b.close(err)); err != nil {
		t.Fatal(err)
	}
	return overspent(result)
}
