// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
)

// LookSnapshot gathers and decides about a snapshot, and does nothing.
func (c *Controller) LookSnapshot(ctx context.Context, key reconcile.Key) (provision.SourceStep, error) {
	in, snapshot := c.gatherSnapshot(key)
	return next(ctx, task[*snapv1.VolumeSnapshot]{snapshot, in, c.isSnapshotOurs})
}

// LookClaim gathers and decides about a source claim, and does nothing.
func (c *Controller) LookClaim(ctx context.Context, key reconcile.Key) (provision.SourceStep, error) {
	in, claim := c.gatherClaim(key)
	return next(ctx, task[*corev1.PersistentVolumeClaim]{claim, in, c.isClaimOurs})
}
