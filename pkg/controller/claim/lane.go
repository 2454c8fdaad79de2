// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
)

// lane gives each class workers of its own: claims of a class whose calls all hang wait among themselves.
// How many calls there are at once is not decided here.
func (c *Controller) lane(key reconcile.Key) string {
	claim := c.lookup(key)
	if claim != nil && c.isRaced(claim) {
		return raceLane
	}
	if claim != nil && claim.Spec.StorageClassName != nil {
		return *claim.Spec.StorageClassName
	}
	if attempt, _ := c.memory.of(key.UID); attempt != nil {
		return attempt.Volume.Spec.StorageClassName
	}
	return ""
}
