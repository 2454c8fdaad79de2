// SPDX-License-Identifier: Apache-2.0

// Package source owns the end of the protection of what volumes are made from: it takes our finalizer
// off snapshots that no restore needs any more, and off source claims that are being deleted and whose
// last clone has ended.
//
// It must not know how volumes are made, only whether one is being made; it decides nothing: provision
// does.
//
// It stands beside the walk of a claim: controller/claim puts the finalizers on, and every change of a
// claim that names a source, or of a source that has our finalizer, brings the source here.
package source

import (
	"context"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
)

// Deps is what the room needs.
type Deps struct {
	Client     kube.Client
	DriverName string
	Clock      clock.WithTicker
	// Local is the part of the cluster that is served.
	Local provision.Local

	Claims *kube.Store[*corev1.PersistentVolumeClaim]
	// Snapshots is nil where snapshots do not exist or may not be watched; then they keep our finalizer
	// until somebody may.
	Snapshots *kube.Store[*snapv1.VolumeSnapshot]
	// IsInUse tells whether a volume is being made from a source.
	IsInUse func(provision.Source) bool
	// GrantsOf gives the ReferenceGrants of a namespace. While it is nil they are unknown.
	GrantsOf func(namespace string) provision.Grants

	Workers              int
	RetryStart, RetryMax time.Duration
}

// Controller is the room. It has one queue per kind of source, since a snapshot and a claim may have the
// same name.
type Controller struct {
	Deps
	options   Options
	snapshots *reconcile.Queue
	claims    *reconcile.Queue
}

// Names of the queues in metrics.
const (
	SnapshotQueueName = "snapshotsources"
	CloneQueueName    = "clonesources"
)

// New makes the room.
func New(options Options, deps Deps) *Controller {
	c := &Controller{Deps: deps, options: options}
	queue := func(name string, workers int, handle reconcile.Func, all func() []reconcile.Key) *reconcile.Queue {
		return reconcile.NewQueue(handle, reconcile.Options{
			Name: name, Workers: workers, All: all, RetryStart: deps.RetryStart, RetryMax: deps.RetryMax, Clock: deps.Clock,
		})
	}
	c.snapshots = queue(SnapshotQueueName, deps.Workers, c.ReconcileSnapshot, c.allSnapshots)
	c.claims = queue(CloneQueueName, int(options.CloneThreads), c.ReconcileClaim, c.allClaims)
	return c
}

// RunSnapshots works on source snapshots until the context ends.
func (c *Controller) RunSnapshots(ctx context.Context) error { return c.snapshots.Run(ctx) }

// RunClaims works on source claims until the context ends.
func (c *Controller) RunClaims(ctx context.Context) error { return c.claims.Run(ctx) }

// SnapshotStatus tells what there is to do about source snapshots.
func (c *Controller) SnapshotStatus() reconcile.Status { return c.snapshots.Status() }

// ClaimStatus tells what there is to do about source claims.
func (c *Controller) ClaimStatus() reconcile.Status { return c.claims.Status() }

// ReconcileSnapshot looks at one snapshot.
func (c *Controller) ReconcileSnapshot(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	in, snapshot := c.gatherSnapshot(key)
	return reconcile.Result{After: c.again(in)}, act(ctx, c.Client, c.Snapshots, task[*snapv1.VolumeSnapshot]{snapshot, in, c.isSnapshotOurs})
}

// ReconcileClaim looks at one source claim.
func (c *Controller) ReconcileClaim(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	in, claim := c.gatherClaim(key)
	return reconcile.Result{After: c.again(in)}, act(ctx, c.Client, c.Claims, task[*corev1.PersistentVolumeClaim]{claim, in, c.isClaimOurs})
}
