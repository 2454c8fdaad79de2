// SPDX-License-Identifier: Apache-2.0

// Package claim owns the work on claims that wait for a volume of the driver: it asks the driver for the
// volume and writes the PersistentVolume, protects what the volume is made from, and gives a claim back
// to the scheduler when the selected node cannot serve it. It also owns the memory of attempts whose
// outcome is open.
//
// It must not know how volumes are deleted or sources released, and decides nothing: provision does.
//
// It stands in the middle of the walk of a claim: claim event → gather → NextClaimStep → act →
// CreateVolume → AfterCreate → PersistentVolume, which Kubernetes binds.
package claim

import (
	"context"
	"fmt"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/attempt"
	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/pkg/trace"
)

// Driver is what the room asks of a CSI driver. Failures are *fault.Error.
type Driver interface {
	CreateVolume(ctx context.Context, request *csi.CreateVolumeRequest) (*csi.Volume, error)
	DeleteVolume(ctx context.Context, request *csi.DeleteVolumeRequest) error
}

// Deps is what the room needs.
type Deps struct {
	Client       kube.Client
	Driver       Driver
	DriverName   string
	Identity     string
	Capabilities capability.Set
	Recorder     kube.Recorder
	Clock        clock.WithTicker
	Topology     *topology.Index
	// Local is the part of the cluster that is served.
	Local provision.Local
	// Surveyor and CountNodes are asked before a node takes a claim; both may be nil.
	Surveyor   Surveyor
	CountNodes func(ctx context.Context) (int, error)

	Claims  *kube.Store[*corev1.PersistentVolumeClaim]
	Volumes *kube.Store[*corev1.PersistentVolume]
	Classes *kube.Store[*storagev1.StorageClass]
	// Grants is nil when sources in other namespaces are not allowed at all.
	Grants Grants

	Workers              int
	RetryStart, RetryMax time.Duration
	// Registry may be nil.
	Registry prometheus.Registerer

	// Record says where open attempts are written down; nil keeps them in memory only.
	Record *Recording
	// Provisioned, when set, hears of every new PersistentVolume.
	Provisioned func(*corev1.PersistentVolume)
	// Failed, when set, hears of every call of the driver that has failed: the class, and the selected node or
	// an empty name.
	Failed func(class, node string)
	// SourceFreed, when set, hears of every source that one attempt less needs.
	SourceFreed func(provision.Source)
}

// Controller is the room.
type Controller struct {
	Deps
	config  provision.Config
	queue   *reconcile.Queue
	memory  *memory
	handles *handles
	// record is nil without Record.
	record  *attempt.Record
	surveys surveys
	metrics metrics
}

// QueueName is the name of the queue in metrics.
const QueueName = "claims"

// New makes the room.
func New(options Options, deps Deps) *Controller {
	c := &Controller{
		Deps: deps, memory: newMemory(), handles: newHandles(), metrics: newMetrics(deps.Registry, func(class string) bool {
			_, ok := deps.Classes.Lookup(kube.Key{Name: class})
			return ok
		}),
		config: provision.Config{
			Driver: deps.DriverName, Identity: deps.Identity, Capabilities: deps.Capabilities, Options: options.Options,
			Local: deps.Local, Migration: translatorOf(deps.DriverName),
		},
	}
	c.queue = reconcile.NewQueue(c.Reconcile, reconcile.Options{
		Name: QueueName, Workers: deps.Workers, RetryStart: deps.RetryStart, RetryMax: deps.RetryMax, Clock: deps.Clock,
		All: c.all, Lane: c.lane, RetriesApart: true, ID: func(key reconcile.Key) types.UID { return key.UID },
	})
	c.record = newRecord(c)
	c.metrics.watch(c)
	return c
}

// Run works until the context ends. It is called with the lead.
func (c *Controller) Run(ctx context.Context) error {
	if c.record != nil {
		return c.runRecorded(ctx)
	}
	err := c.queue.Run(ctx)
	for _, attempt := range c.memory.unsettled() {
		// The next process makes the same request for a claim that lives. For one that is gone this line is
		// the last that is known of the volume.
		klog.FromContext(ctx).Info("Stopping while a CreateVolume has no certain outcome; if the claim is deleted before the next start, look for the volume at the driver",
			"volume", attempt.Name(), "claim", attempt.Ref.Namespace+"/"+attempt.Ref.Name)
	}
	return err
}

// IsInUse tells whether a volume is being made from a source, or may be.
func (c *Controller) IsInUse(source provision.Source) bool { return c.memory.uses(source) }

// maxSteps bounds one look at a claim; the longest road there is has fewer.
const maxSteps = 8

// Status tells what the room has to do.
func (c *Controller) Status() reconcile.Status { return c.queue.Status() }

// Reconcile takes one claim as far as it goes without waiting, with one call of CreateVolume at most.
// What a step reads or protects becomes input of the next decision.
func (c *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	trace.About(ctx, trace.Subject{
		Kind: "PersistentVolumeClaim", Namespace: key.Namespace, Name: key.Name, UID: string(key.UID), Operation: trace.Create,
	})
	c.memory.join(key.UID, c.Clock.Now())
	in := c.gather(key)
	for range maxSteps {
		step := provision.NextClaimStep(in)
		reconcile.Chose(ctx, step)
		if c.read(ctx, &in, step) {
			continue
		}
		if _, ok := step.(provision.ProtectSource); !ok {
			return c.act(ctx, key, in, step)
		}
		source, err := c.protect(ctx, in.Source)
		if err != nil {
			return c.act(ctx, key, in, provision.Reject{Err: err})
		}
		in.Source = source
	}
	return reconcile.Result{}, fmt.Errorf("claim %s: no decision after %d steps", key, maxSteps)
}
