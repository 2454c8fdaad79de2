// SPDX-License-Identifier: Apache-2.0

// Package volumesnapshot owns the binding of VolumeSnapshots and their contents: the snapshots' class,
// finalizers and status, the making and deleting of contents, and the protection of source claims.
//
// It must not know the driver, and decides nothing: snapshot.NextSnapshotStep does. Whether it takes part
// at all is a Stance, since only one program may bind the snapshots of a driver.
//
// It stands at both ends of the walk of a snapshot: snapshot event → gather → NextSnapshotStep → act, which
// makes the content; and again when the content's status says what the driver did.
package volumesnapshot

import (
	"context"
	"strings"
	"sync"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
)

// Deps is what the room needs.
type Deps struct {
	Client   kube.Client
	Recorder kube.Recorder
	Clock    clock.WithTicker
	// DriverName is the driver beside us, whose contents our other half works on; empty without one.
	DriverName string
	// NamePrefix and NameLength make the name that the driver sees, as in our other half; without a prefix that one records it.
	NamePrefix string
	NameLength int

	Snapshots *kube.Store[*snapv1.VolumeSnapshot]
	Contents  *kube.Store[*kube.Content]
	Classes   *kube.Store[*snapv1.VolumeSnapshotClass]
	Claims    *kube.Store[*corev1.PersistentVolumeClaim]

	// Stance says whether to take part, and for whose snapshots.
	Stance *Stance
	// NodeOf names the node whose sidecar has to take a snapshot of a volume. Nil means that any may.
	NodeOf func(*corev1.PersistentVolume) (string, error)
	// Node is the one that our other half serves; empty when it serves all.
	Node string

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
	meters  *meters
	// neglected are the contents that nobody works on.
	neglected *unserved

	mu sync.Mutex
	// working says that this room works, which it does with the lead only.
	working bool
	// gone holds, by the snapshot's UID, each content that was seen to be deleted while its snapshot is there.
	gone map[types.UID]goneContent
	// torn holds the snapshots that went without having been Terminating, until their contents are deleted.
	torn map[kube.Key][]types.UID
	// classSince holds when each class was seen to come or to change.
	classSince map[string]time.Time
}

// QueueName is the name of the queue in metrics.
const QueueName = "csi-snapshotter-snapshot"

// New makes the room.
func New(options Options, deps Deps) *Controller {
	c := &Controller{Deps: deps, options: options, gone: map[types.UID]goneContent{}, torn: map[kube.Key][]types.UID{}, meters: newMeters(deps.Registry, deps.Clock),
		neglected: newUnserved(deps.Registry), classSince: map[string]time.Time{}}
	c.queue = reconcile.NewQueue(c.Reconcile, reconcile.Options{
		Name: QueueName, Workers: deps.Workers, RetryStart: deps.RetryStart, RetryMax: deps.RetryMax,
		Clock: deps.Clock, All: c.all, ID: c.id,
	})
	return c
}

// id is the snapshot's, of which the driver's name of it is made.
func (c *Controller) id(key reconcile.Key) types.UID {
	snapshot, ok := c.Snapshots.Lookup(kube.Key{Namespace: key.Namespace, Name: key.Name})
	if !ok {
		return ""
	}
	return snapshot.UID
}

// Run works until the context ends. It is called with the lead.
func (c *Controller) Run(ctx context.Context) error {
	stop := c.Stance.onChange(c.addAll)
	defer stop()
	c.Stance.Look(ctx) // before the first write
	c.begin()
	return c.queue.Run(ctx)
}

// begin notes that this room works from now on.
func (c *Controller) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.working = true
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

// addAll looks at everything, as when this room begins to take part.
func (c *Controller) addAll() {
	for _, key := range c.all() {
		c.queue.Add(key)
	}
}

// all are the keys of all there is. Snapshots that are gone may have left contents, and claims that are protected for them.
func (c *Controller) all() (keys []reconcile.Key) {
	for _, s := range c.Snapshots.All() {
		keys = append(keys, keyOf(s))
	}
	for _, content := range c.Contents.All() {
		keys = append(keys, refKey(content))
	}
	for _, claim := range c.Claims.All() {
		keys = append(keys, c.OnClaim(kube.Change[*corev1.PersistentVolumeClaim]{New: claim})...)
	}
	return keys
}

func keyOf(s *snapv1.VolumeSnapshot) reconcile.Key {
	return reconcile.Key{Namespace: s.Namespace, Name: s.Name}
}

// refKey is the snapshot that a content points at.
func refKey(content *kube.Content) reconcile.Key {
	ref := content.Spec.VolumeSnapshotRef
	return reconcile.Key{Namespace: ref.Namespace, Name: ref.Name}
}

// claimMark distinguishes the keys of claims from those of snapshots; no name can contain it.
const claimMark = "claim/"

// claimKey asks whether a claim is still protected for nobody.
func claimKey(claim kube.Key) reconcile.Key {
	return reconcile.Key{Namespace: claim.Namespace, Name: claimMark + claim.Name}
}

// maxSteps bounds one look at a snapshot; the longest road there is has fewer.
const maxSteps = 16

// Status tells what the room has to do.
func (c *Controller) Status() reconcile.Status { return c.queue.Status() }

// Reconcile takes one snapshot as far as it goes without waiting. After each step it gathers and decides
// anew, from what the server returned, so that a crash after any of them is no special case.
func (c *Controller) Reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	scope, takesPart := c.Stance.Scope()
	if !takesPart {
		return reconcile.Result{}, nil // somebody else binds; when that ends, every key comes back
	}
	r := &round{Controller: c, scope: scope, key: kube.Key{Namespace: key.Namespace, Name: key.Name}}
	if name, isClaim := strings.CutPrefix(key.Name, claimMark); isClaim {
		r.key, r.claim = kube.Key{}, kube.Key{Namespace: key.Namespace, Name: name}
	}
	defer c.tidy(r.key)()
	if err := r.clean(ctx); err != nil {
		return reconcile.Result{}, c.promptly(key, err)
	}
	for range maxSteps {
		in, ok := r.gather()
		if !ok {
			return reconcile.Result{}, nil // deleted, and nothing of it is left to do
		}
		if in.Snapshot != nil {
			kube.About(ctx, in.Snapshot, "")
		}
		step := snapshot.NextSnapshotStep(in)
		reconcile.Chose(ctx, step)
		c.meters.observe(in)
		c.neglected.observe(in)
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
