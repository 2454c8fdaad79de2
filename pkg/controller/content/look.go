// SPDX-License-Identifier: Apache-2.0

package content

import (
	"context"
	"fmt"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
)

// Look decides about a content as Reconcile does, and does nothing: it gives the input and the steps up to
// the one that would wait, write or call. There are no steps for a content that does not exist.
func (c *Controller) Look(ctx context.Context, key reconcile.Key) (snapshot.ContentInput, []snapshot.ContentStep, error) {
	r := &round{Controller: c, key: kube.Key{Name: key.Name}}
	var steps []snapshot.ContentStep
	for range maxSteps {
		in, ok := r.gather()
		if !ok {
			return in, nil, nil
		}
		step := snapshot.NextContentStep(in)
		steps = append(steps, step)
		if _, ok := step.(snapshot.Confirm); !ok {
			return in, steps, nil
		}
		next, err := r.confirm(ctx)
		if err != nil || next.ends {
			return in, steps, err
		}
	}
	return snapshot.ContentInput{}, steps, fmt.Errorf("content %s: no decision after %d steps", key, maxSteps)
}
