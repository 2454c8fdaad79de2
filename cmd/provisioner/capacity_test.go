// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/controller/storagecapacity"
	"github.com/csi-tandem/csi-tandem/pkg/sidecar"
)

// PW-6: a driver that cannot say how much room it has is not asked, and the rest of the work goes on. One that does not look
// would ask on and on, and here would miss its client.
func TestDriverThatCannotMeasure(t *testing.T) {
	t.Setenv("NAMESPACE", "ns")
	t.Setenv("POD_NAME", "pod")
	options := storagecapacity.NewOptions()
	options.Enabled = true
	r := &rooms{capacity: options}
	room, runs, err := r.setupCapacity(t.Context(), &sidecar.Env{Capabilities: capability.Of(nil)}, "")
	if room != nil || len(runs) != 0 || err != nil {
		t.Errorf("PW-6: got %v, %d to run, %v", room, len(runs), err)
	}
}
