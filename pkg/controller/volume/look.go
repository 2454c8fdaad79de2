// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"fmt"

	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
)

// Look gathers and decides about a PersistentVolume, and does nothing. A deletion is decided twice: on the
// cache, which costs nothing, and on what the API server says.
func (c *Controller) Look(ctx context.Context, key reconcile.Key) (provision.VolumeInput, provision.VolumeStep, error) {
	in := c.gather(key)
	step := provision.NextVolumeStep(in)
	if _, ok := step.(provision.Confirm); !ok {
		return in, step, nil
	}
	live, err := c.fetchLive(ctx, in)
	if err != nil {
		return in, step, fmt.Errorf("reading PersistentVolume %s before its deletion: %w", key.Name, err)
	}
	return live, provision.NextVolumeStep(live), nil
}
