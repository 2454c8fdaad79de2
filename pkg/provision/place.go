// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"fmt"

	"github.com/csi-tandem/csi-tandem/pkg/topology"
)

// Misplacement says that a finished volume cannot be reached from the node that was selected for its pod,
// and why; it is empty when nothing is wrong. The volume is kept, as it may be the only one that the driver
// could make: the scheduler knows from its affinity where the pod can run.
func (c Config) Misplacement(attempt *Attempt, index *topology.Index) string {
	if attempt.Node == "" || attempt.Made == nil || index == nil {
		return ""
	}
	where, misplaced := index.Misplaced(attempt.Node, attempt.Made.GetAccessibleTopology())
	switch {
	case !misplaced:
		return ""
	case c.Places.Strict:
		return fmt.Sprintf("volume %s is not where it was asked for: %s, although the driver was asked for that node's segment only; the pod has to run elsewhere, and the driver should be looked at", attempt.Name(), where)
	default:
		return fmt.Sprintf("volume %s is not at the selected node: %s; without --strict-topology the driver may choose any segment that it is offered, so the pod has to run elsewhere; with --strict-topology it is offered the node's only", attempt.Name(), where)
	}
}
