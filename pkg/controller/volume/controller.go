// SPDX-License-Identifier: Apache-2.0

// Package volume owns the end of PersistentVolumes of the driver: our finalizer on them, the deletion of
// what is behind them when their claim has let them go, and their own deletion.
//
// It must not know how volumes are made, and decides nothing: provision does.
//
// It stands at the end of the walk of a claim: PersistentVolume event → gather → NextVolumeStep → act →
// DeleteVolume → the PersistentVolume goes. What it remembers, which volumes the driver has removed and
// which secrets are missing, only saves calls and may be lost with the process.
package volume

import (
	"context"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/migration"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/trace"
)

// Driver is what the room asks of a CSI driver. Failures are *fault.Error.
type Driver interface {
	DeleteVolume(ctx context.Context, request *csi.DeleteVolumeRequest) error
}

// Deps is what the room needs.
type Deps struct {
	Client       kube.Client
	Driver       Driver
	DriverName   string
	Capabilities capability.Set
	Recorder     kube.Recorder
	Clock        clock.WithTicker
	// Local is the part of the cluster that is served, and Patience how long what another node's process has
	// made is left to it.
	Local    provision.Local
	Patience time.Duration

	Volumes *kube.Store[*corev1.PersistentVolume]
	Classes *kube.Store[*storagev1.StorageClass]
	// Claims tell whether a volume that was let go has a claim all the same.
	Claims *kube.Store[*corev1.PersistentVolumeClaim]
	// Attachments is nil for drivers whose volumes are not attached.
	Attachments *kube.Store[*storagev1.VolumeAttachment]

	Workers              int
	RetryStart, RetryMax time.Duration
	// Registry may be nil.
	Registry prometheus.Registerer

	// Settle, when set, sees to it that what was begun for the claim of a volume is over and off the record;
	// false means that it is not over yet.
	Settle func(context.Context, *corev1.PersistentVolume) (bool, error)
	// Deleted, when set, hears of every volume that the driver has removed.
	Deleted func(*corev1.PersistentVolume)
}

// Controller is the room.
type Controller struct {
	Deps
	queue   *reconcile.Queue
	memory  *memory
	metrics metrics
	// translator is nil for drivers that replace nothing.
	translator *migration.Translator
}

// QueueName is the name of the queue in metrics.
const QueueName = "volumes"

// New makes the room. It has no flags of its own.
func New(deps Deps) *Controller {
	c := &Controller{Deps: deps, memory: newMemory(), metrics: newMetrics(deps.Registry)}
	c.translator, _ = migration.For(deps.DriverName)
	c.queue = reconcile.NewQueue(c.Reconcile, reconcile.Options{
		Name: QueueName, Workers: deps.Workers, RetryStart: deps.RetryStart, RetryMax: deps.RetryMax, Clock: deps.Clock,
		All: c.all, Lane: c.lane, RetriesApart: true, ID: c.id,
	})
	return c
}

// lane gives each class workers of its own, so that deletions which hang hold up no others.
func (c *Controller) lane(key reconcile.Key) string {
	volume, ok := c.Volumes.Lookup(kube.Key{Name: key.Name})
	if !ok {
		return ""
	}
	return volume.Spec.StorageClassName
}

// id is the claim's, as in the lines about the making of the volume.
func (c *Controller) id(key reconcile.Key) types.UID {
	volume, ok := c.Volumes.Lookup(kube.Key{Name: key.Name})
	if !ok || volume.Spec.ClaimRef == nil {
		return ""
	}
	return volume.Spec.ClaimRef.UID
}

// Run works until the context ends. It is called with the lead.
func (c *Controller) Run(ctx context.Context) error { return c.queue.Run(ctx) }

// Status tells what the room has to do.
func (c *Controller) Status() reconcile.Status { return c.queue.Status() }

// about: the protection of a new volume belongs to the making of its claim's, and all else here to the end of the volume, which
// for a released one begins before its deletion.
func about(ctx context.Context, in provision.VolumeInput) {
	if in.Volume == nil || !trace.IsTraced(ctx) {
		return
	}
	s := trace.Subject{Kind: "PersistentVolume", Name: in.Volume.Name, UID: string(in.Volume.UID), Operation: trace.Delete}
	if _, isNew := provision.NextVolumeStep(in).(provision.Protect); isNew && in.Volume.Spec.ClaimRef != nil {
		s.Of, s.Operation = string(in.Volume.Spec.ClaimRef.UID), trace.Create
	}
	trace.About(ctx, s)
}

// Reconcile takes one PersistentVolume one step, with one call of DeleteVolume at most.
func (c *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	// First, so that what is read live before a deletion does not grow old while the record is written.
	cached := c.gather(key)
	about(ctx, cached)
	defer c.tidy(cached.Volume)
	if settled, err := c.isSettled(ctx, cached.Volume, provision.NextVolumeStep(cached)); err != nil || !settled {
		return reconcile.Result{After: settlePoll, Why: unsettled}, err
	}
	in, step, err := c.Look(ctx, key)
	if apierrors.IsForbidden(err) {
		return c.reject(ctx, cached.Volume, err)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	reconcile.Chose(ctx, step)
	if settled, err := c.isSettled(ctx, in.Volume, step); err != nil || !settled {
		return reconcile.Result{After: settlePoll, Why: unsettled}, err
	}
	return c.act(ctx, in, step)
}
