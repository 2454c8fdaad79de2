// SPDX-License-Identifier: Apache-2.0

// Package content owns the work on VolumeSnapshotContents with the driver: take, poll, delete, and the
// content's status, being-created mark and the removal of its finalizer.
//
// It must not know how snapshots are bound, and decides nothing: snapshot.NextContentStep does.
//
// It stands in the middle of the walk of a snapshot: content event → gather → NextContentStep → act →
// status, which wakes the half that binds. What it remembers between two looks is an Attempt for each
// content at work; losing that with the process is safe, since the mark on the content says that a create
// may be open.
package content

import (
	"context"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
)

// Driver is what the room asks of a CSI driver. Failures are *fault.Error.
type Driver interface {
	CreateSnapshot(ctx context.Context, request *csi.CreateSnapshotRequest) (*csi.Snapshot, error)
	DeleteSnapshot(ctx context.Context, request *csi.DeleteSnapshotRequest) error
	GetSnapshot(ctx context.Context, request *csi.GetSnapshotRequest) (*csi.Snapshot, error)
	ListSnapshots(ctx context.Context, request *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error)
}

// Deps is what the room needs.
type Deps struct {
	Client       kube.Client
	Driver       Driver
	DriverName   string
	Capabilities capability.Set
	Recorder     kube.Recorder
	Clock        clock.WithTicker

	Contents *kube.Store[*kube.Content]
	Classes  *kube.Store[*snapv1.VolumeSnapshotClass]
	// Snapshots is nil where snapshots may not be watched; then the mark of the other half decides.
	Snapshots *kube.Store[*snapv1.VolumeSnapshot]

	Workers              int
	RetryStart, RetryMax time.Duration
	// Registry may be nil.
	Registry prometheus.Registerer
}

// Controller is the room.
type Controller struct {
	Deps
	options Options
	queue   *reconcile.Queue
	letGo   prometheus.Counter

	mu       sync.Mutex
	attempts map[types.UID]snapshot.Attempt
	// began is when this process got the lead, older what existed then.
	began time.Time
	older map[types.UID]bool
}

// QueueName is the name of the queue in metrics.
const QueueName = "csi-snapshotter-content"

// New makes the room.
func New(options Options, deps Deps) *Controller {
	c := &Controller{
		Deps: deps, options: options, attempts: map[types.UID]snapshot.Attempt{},
		letGo: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "csi_tandem_snapshots_outcome_unknown_total",
			Help: "Deleted snapshots of which the driver could not say whether they were made.",
		}),
	}
	if deps.Registry != nil {
		deps.Registry.MustRegister(c.letGo)
	}
	c.queue = reconcile.NewQueue(c.Reconcile, reconcile.Options{
		Name: QueueName, Workers: deps.Workers, RetryStart: deps.RetryStart, RetryMax: deps.RetryMax,
		Clock: deps.Clock, All: c.all, Lane: c.lane, RetriesApart: true, ID: c.id,
	})
	return c
}

// Run works until the context ends. It is called with the lead.
func (c *Controller) Run(ctx context.Context) error {
	c.begin()
	return c.queue.Run(ctx)
}

// all are the contents to begin with.
func (c *Controller) all() (keys []reconcile.Key) {
	for _, content := range c.Contents.All() {
		keys = append(keys, c.OnContent(kube.Change[*kube.Content]{New: content})...)
	}
	return keys
}

// maxSteps bounds one look at a content; the longest road there is has fewer.
const maxSteps = 12

// soon is when a second driver call for the same content may come.
const soon = time.Millisecond

// Status tells what the room has to do.
func (c *Controller) Status() reconcile.Status { return c.queue.Status() }

// Reconcile takes one content as far as it goes without waiting, with one driver call at most. After each
// step it gathers and decides anew, from what the server returned.
func (c *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	r := &round{Controller: c, key: kube.Key{Name: key.Name}}
	defer r.tidy()
	for range maxSteps {
		in, ok := r.gather()
		if !ok {
			return reconcile.Result{}, nil // deleted, and nothing of it is left to do
		}
		kube.About(ctx, r.content, r.content.Spec.VolumeSnapshotRef.UID)
		step := snapshot.NextContentStep(in)
		if _, waits := step.(snapshot.Wait); waits {
			reconcile.Postponed(ctx, step)
		} else {
			reconcile.Chose(ctx, step)
		}
		next, err := r.act(ctx, in, step)
		if err != nil {
			return reconcile.Result{}, c.promptly(key, err)
		}
		if next.ends {
			return reconcile.Result{After: next.after, Why: next.why}, nil
		}
	}
	return reconcile.Result{After: time.Second}, nil
}

// conflictStart and conflictMax bound the delay after a conflict, which says nothing about the health of
// anybody: the newer object is here as soon as the watch has told of it.
const conflictStart, conflictMax = 20 * time.Millisecond, 2 * time.Second

// promptly makes conflicts wait less than failures.
func (c *Controller) promptly(key reconcile.Key, err error) error {
	if !kube.IsConflict(err) {
		return err
	}
	return fault.RetryAfter(err, min(conflictStart<<min(c.queue.Failures(key), 10), conflictMax))
}

// id is the snapshot's, of which the driver's name of it is made.
func (c *Controller) id(key reconcile.Key) types.UID {
	content, ok := c.Contents.Lookup(kube.Key{Name: key.Name})
	if !ok {
		return ""
	}
	return content.Spec.VolumeSnapshotRef.UID
}

// lane keeps slow creates from holding up deletions, and both from holding up polls; and what one class has
// to wait for from holding up another.
func (c *Controller) lane(key reconcile.Key) string {
	content, ok := c.Contents.Lookup(kube.Key{Name: key.Name})
	switch {
	case !ok:
		return "create"
	case content.DeletionTimestamp != nil:
		return "delete " + classOf(content)
	case content.Spec.Source.SnapshotHandle != nil, content.Status != nil && content.Status.SnapshotHandle != nil:
		return "poll " + classOf(content)
	default:
		return "create " + classOf(content)
	}
}

func classOf(content *kube.Content) string {
	if name := content.Spec.VolumeSnapshotClassName; name != nil {
		return *name
	}
	return ""
}
