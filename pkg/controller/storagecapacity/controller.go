// SPDX-License-Identifier: Apache-2.0

// Package storagecapacity owns the CSIStorageCapacity objects of the driver: it asks how much room there is
// in each segment, writes what it hears, and removes what nobody needs. Whoever knows that the room has
// changed, such as the rooms of claims and volumes, tells it by a function; apart from that it polls.
//
// It must not know how volumes are made or deleted, and decides nothing about objects: capacity does.
//
// It stands beside the walk of a claim: new or deleted volume, full segment, class, node → key → GetCapacity
// → NextSteps → CSIStorageCapacity, which the scheduler reads before it chooses a node for the next claim.
package storagecapacity

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/prometheus/client_golang/prometheus"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/capacity"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Driver is what the room asks of a CSI driver. Failures are *fault.Error.
type Driver interface {
	GetCapacity(ctx context.Context, request *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error)
}

// Deps is what the room needs.
type Deps struct {
	Client       kube.Client
	Driver       Driver
	DriverName   string
	Capabilities capability.Set
	// Identity of the process, by which its polls are spread differently from those of others.
	Identity string
	Clock    clock.WithTicker
	// Topology says which segments there are, whoever feeds it.
	Topology *topology.Index

	Classes *kube.Store[*storagev1.StorageClass]
	// Objects are at least those that Selector selects in Namespace.
	Objects *kube.Store[*storagev1.CSIStorageCapacity]

	// Namespace is where the objects are, and Pod where the walk to their owner begins.
	Namespace, Pod string
	// Node is the node that this process serves; empty for the whole cluster.
	Node string

	RetryStart, RetryMax time.Duration
	// Registry may be nil.
	Registry prometheus.Registerer
}

// Controller is the room.
type Controller struct {
	Deps
	options Options
	queue   *reconcile.Queue
	add     func(reconcile.Key)
	memory  *memory
	// base are the rules without the owner, which is known only when the work begins.
	base  capacity.Rules
	owner atomic.Pointer[metav1.OwnerReference]
	pace  pace
}

// QueueName is the name of the queue in metrics.
const QueueName = "csistoragecapacity"

// Selector selects the objects of a process by their labels.
func Selector(driver, node string) string {
	return wellknown.LabelCapacityDriver + "=" + driver + "," + wellknown.LabelCapacityManagedBy + "=" + wellknown.CapacityManagedBy(node)
}

// New makes the room.
func New(options Options, deps Deps) *Controller {
	c := &Controller{
		Deps: deps, options: options, memory: newMemory(),
		base: capacity.Rules{
			Driver: deps.DriverName, Namespace: deps.Namespace, ManagedBy: wellknown.CapacityManagedBy(deps.Node), Immediate: options.Immediate,
		},
		pace: pace{identity: deps.Identity, poll: options.PollInterval, retryStart: deps.RetryStart, retryMax: min(deps.RetryMax, options.PollInterval)},
	}
	c.queue = reconcile.NewQueue(c.Reconcile, reconcile.Options{
		Name: QueueName, Workers: int(options.Threads), RetryStart: deps.RetryStart, RetryMax: deps.RetryMax, Clock: deps.Clock, Lane: c.lane,
	})
	c.add = c.queue.Add
	if deps.Registry != nil {
		deps.Registry.MustRegister(&gauges{c})
	}
	return c
}

// rules are what holds for all objects.
func (c *Controller) rules() capacity.Rules {
	rules := c.base
	rules.Owner = c.owner.Load()
	return rules
}

// Run finds the owner of the objects, looks at everything once, and works until the context ends. It is
// called with the lead.
func (c *Controller) Run(ctx context.Context) error {
	owner, err := c.awaitOwner(ctx)
	if err != nil {
		return err
	}
	c.owner.Store(owner)
	for _, key := range c.Begin() {
		c.add(key)
	}
	return c.queue.Run(ctx)
}

// Len is how many keys wait to be looked at.
func (c *Controller) Len() int { return c.queue.Len() }

// Reconcile looks at one key: a segment that the driver is asked about, or an object that may be needless.
func (c *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	switch key.UID {
	case ofObject:
		return reconcile.Result{}, c.tidy(ctx, key)
	case ofGroup:
		return c.spread(key), nil
	case ofLack:
		return c.tellLack(ctx), nil
	}
	q, ok := c.gather(key)
	if !ok {
		c.memory.forget(key)
		return reconcile.Result{}, nil
	}
	if wait := c.memory.wait(key, c.Clock.Now(), c.pace); wait > 0 {
		return reconcile.Result{After: wait}, nil
	}
	asked := c.memory.begin(key, c.Clock.Now())
	answer, err := c.Driver.GetCapacity(ctx, capacity.Question(q.parameters, q.asked))
	if err != nil {
		result := c.failed(ctx, key, err)
		if ctx.Err() != nil {
			return result, nil
		}
		return result, c.publish(ctx, key) // what somebody has removed comes back with the last answer
	}
	room := capacity.RoomOf(answer)
	c.memory.succeeded(key, room, asked)
	klog.FromContext(ctx).V(5).Info("driver answered", "available", room.Available)
	return reconcile.Result{After: c.pace.untilPoll(key, asked)}, c.publish(ctx, key)
}

// lane keeps apart what must not wait for each other: segments that do not answer hold up no others, what
// somebody waits for does not queue behind polls, and clearing up goes on through an outage of the driver.
func (c *Controller) lane(key reconcile.Key) string {
	if key.UID != "" {
		return string(key.UID)
	}
	return c.memory.lane(key)
}
