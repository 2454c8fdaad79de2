// SPDX-License-Identifier: Apache-2.0

package source

import (
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
)

// LookSnapshot gathers and decides about a snapshot, and does nothing.
func (c *Controller) LookSnapshot(key reconcile.Key) (provision.SourceInput, provision.SourceStep) {
	in, _ := c.gatherSnapshot(key)
	return in, provision.NextSourceStep(in)
}

// LookClaim gathers and decides about a source claim, and does nothing.
func (c *Controller) LookClaim(key reconcile.Key) (provision.SourceInput, provision.SourceStep) {
	in, _ := c.gatherClaim(key)
	return in, provision.NextSourceStep(in)
}
