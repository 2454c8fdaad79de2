// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"fmt"

	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
)

// read makes what a step asks to know part of the input. False means that the step does not read.
func (c *Controller) read(ctx context.Context, in *provision.ClaimInput, step provision.ClaimStep) bool {
	switch s := step.(type) {
	case provision.ReadSource:
		in.Source = c.fetchSource(ctx, s.Source)
	case provision.ReadAttributes:
		in.Attributes = c.fetchAttributes(ctx, s.Name)
	case provision.ReadNamespace:
		in.Namespace = c.fetchNamespace(ctx, s.Name)
	case provision.AskRoom:
		in.Room = c.fetchRoom(ctx, *in, s.Request)
	default:
		return false
	}
	return true
}

// Look decides about a claim as Reconcile does, and does nothing: it gives the input and all steps up to
// the one that would wait, write or call. Protection of a source, which would come before the call, is
// taken as done.
func (c *Controller) Look(ctx context.Context, key reconcile.Key) (provision.ClaimInput, []provision.ClaimStep, error) {
	in := c.gather(key)
	var steps []provision.ClaimStep
	for range maxSteps {
		step := provision.NextClaimStep(in)
		steps = append(steps, step)
		if c.read(ctx, &in, step) {
			continue
		}
		if _, ok := step.(provision.ProtectSource); !ok {
			return in, steps, nil
		}
		protected := *in.Source
		protected.Unprotected = true
		in.Source = &protected
	}
	return in, steps, fmt.Errorf("claim %s: no decision after %d steps", key, maxSteps)
}
