// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"strings"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/driver"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/throttle"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
)

// Env is what a process hands to its rooms. The informers are made when they are asked for first, one
// for each kind, and run as soon as Setup has returned, whoever leads.
type Env struct {
	Client kube.Client
	// Driver is nil in a process that runs without one; its name is empty then.
	Driver *driver.Conn
	// Calls are the driver's, with no more of them at once than it bears. It is nil without a driver.
	Calls        *throttle.Driver
	DriverName   string
	Capabilities capability.Set
	// Identity names this process in what it makes.
	Identity string
	// Node is the node that is served, and Place where its driver says that it is; empty in a process that serves
	// the whole cluster.
	Node  string
	Place topology.Segment
	// Narrow is set by Setup before it asks for the first cache.
	Narrow Narrow
	// Holder names this process in leases, and LeaseNamespace is where they are.
	Holder, LeaseNamespace string
	Recorder               kube.Recorder
	Clock                  clock.WithTicker
	Registry               prometheus.Registerer
	Options                *Options
	Gates                  *Gates

	recorder  func(component string) kube.Recorder
	access    *access
	tenures   *tenures
	awaited   []Right
	doubted   []Right
	informers []watched
	index     *topology.Index
	contents  *kube.Informer[*kube.Content]
	config    *rest.Config
}

// watched is an informer of any kind.
type watched interface {
	kube.Runner
	Failure() error
	Resource() kube.Resource
	Namespace() string
}

// RecorderAs is a recorder whose events come from another component than the program's own.
func (e *Env) RecorderAs(component string) kube.Recorder { return e.recorder(component) }

// Tenure has the lease of the program note who leads, as those do who write down what they begin, and tells what is noted there while this
// process leads. Without an election it tells nothing.
func (e *Env) Tenure() func() kube.Tenure {
	if e.tenures == nil {
		e.tenures = &tenures{}
	}
	return e.tenures.now
}

// Disown takes back what Tenure has noted, for a process that cannot write down what it begins: who leads next has to know that. It returns true
// once that is on the lease, which the next renewal does, or when there is none.
func (e *Env) Disown() bool {
	lock := e.tenureLock()
	return lock == nil || lock.disown()
}

// Own notes anew what Disown took back, from now on.
func (e *Env) Own() {
	if lock := e.tenureLock(); lock != nil {
		lock.disowned.Store(false)
	}
}

func (e *Env) tenureLock() *leaseLock {
	if e.tenures == nil {
		return nil
	}
	return e.tenures.lock
}

// tenures are told of by the lock of the program's own lease.
type tenures struct{ lock *leaseLock }

func (t *tenures) now() kube.Tenure {
	if t.lock == nil {
		return kube.Tenure{}
	}
	return t.lock.Tenure()
}

// Require adds rights to those whose lack is told.
func (e *Env) Require(rights ...Right) { e.access.require(rights...) }

// Allows asks the API server now whether this process has a right. A question without an answer counts as
// yes: the work itself will find out.
func (e *Env) Allows(ctx context.Context, right Right) bool { return e.ask(ctx, right) != refused }

func (e *Env) ask(ctx context.Context, right Right) verdict {
	all := granted
	for verb := range strings.FieldsSeq(right.Verbs) {
		switch v := e.access.learn(ctx, question{right.Group, right.Resource, right.Namespace, verb}); v {
		case refused:
			return refused
		case unknown:
			all = unknown
		default:
		}
	}
	return all
}

// AllowsOrAwaits is Allows, and has Setup called again when a missing right has come, or one of which nobody could tell
// turns out to be missing: what was set up for it might wait for ever.
func (e *Env) AllowsOrAwaits(ctx context.Context, right Right) bool {
	v := e.ask(ctx, right)
	switch v {
	case refused:
		e.awaited = append(e.awaited, right)
	case unknown:
		e.doubted = append(e.doubted, right)
	default:
	}
	return v != refused
}

func informerOf[T kube.Object](e *Env, options kube.InformerOptions[T]) *kube.Informer[T] {
	for _, w := range e.informers {
		if known, ok := w.(*kube.Informer[T]); ok && any(known) != any(e.contents) {
			return known
		}
	}
	options.Resync = e.Options.ResyncPeriod
	if options.Trim == nil {
		options.Trim = kube.TrimApplied[T]
	}
	informer := kube.NewInformer(e.Client, options)
	e.informers = append(e.informers, informer)
	return informer
}

// Claims are the PersistentVolumeClaims, those that need nothing of the driver in short.
func (e *Env) Claims() *kube.Informer[*corev1.PersistentVolumeClaim] {
	return informerOf(e, kube.InformerOptions[*corev1.PersistentVolumeClaim]{
		Indexes: kube.ClaimIndexes(), Trim: kube.TrimClaim(e.DriverName), Keep: e.Narrow.Claims, Packed: true,
	})
}

// Volumes are the PersistentVolumes, with what their end takes.
func (e *Env) Volumes() *kube.Informer[*corev1.PersistentVolume] {
	return informerOf(e, kube.InformerOptions[*corev1.PersistentVolume]{
		Indexes: kube.VolumeIndexes(), Trim: e.trimVolume(), Keep: e.Narrow.Volumes, Packed: true,
	})
}

// StorageClasses are the storage classes.
func (e *Env) StorageClasses() *kube.Informer[*storagev1.StorageClass] {
	return informerOf(e, kube.InformerOptions[*storagev1.StorageClass]{})
}

// Nodes are the nodes, with nothing but their labels.
func (e *Env) Nodes() *kube.Informer[*corev1.Node] {
	return informerOf(e, kube.InformerOptions[*corev1.Node]{Trim: kube.TrimNode, Packed: true})
}

// CSINodes say where the driver runs.
func (e *Env) CSINodes() *kube.Informer[*storagev1.CSINode] {
	return informerOf(e, kube.InformerOptions[*storagev1.CSINode]{Trim: kube.TrimCSINode(e.DriverName), Packed: true})
}

// Topology is the index of nodes and segments, fed by Nodes and CSINodes, or that of the one node that is served.
func (e *Env) Topology() *topology.Index {
	switch {
	case e.index != nil:
	case e.Node != "":
		e.index = e.onlyHere()
	default:
		e.index = topology.NewIndex()
		kube.FeedNodes(e.index, e.DriverName, e.Nodes(), e.CSINodes())
	}
	return e.index
}

// VolumeAttachments say which volumes are attached.
func (e *Env) VolumeAttachments() *kube.Informer[*storagev1.VolumeAttachment] {
	return informerOf(e, kube.InformerOptions[*storagev1.VolumeAttachment]{
		Indexes: kube.AttachmentIndexes(), Trim: kube.TrimAttachment, Keep: e.Narrow.Attachments, Packed: true,
	})
}

// Snapshots are the VolumeSnapshots.
func (e *Env) Snapshots() *kube.Informer[*snapv1.VolumeSnapshot] {
	return informerOf(e, kube.InformerOptions[*snapv1.VolumeSnapshot]{Indexes: kube.SnapshotIndexes(), Keep: e.Narrow.Snapshots, Packed: true})
}

// Contents are the VolumeSnapshotContents.
func (e *Env) Contents() *kube.Informer[*kube.Content] {
	return informerOf(e, kube.InformerOptions[*kube.Content]{Indexes: kube.ContentIndexes(), Packed: true})
}

// Grants are the ReferenceGrants, by which a namespace lets claims of others have its data.
func (e *Env) Grants() *kube.Informer[*kube.ReferenceGrant] {
	return informerOf(e, kube.InformerOptions[*kube.ReferenceGrant]{Indexes: kube.GrantIndexes()})
}

// SnapshotClasses are the VolumeSnapshotClasses.
func (e *Env) SnapshotClasses() *kube.Informer[*snapv1.VolumeSnapshotClass] {
	return informerOf(e, kube.InformerOptions[*snapv1.VolumeSnapshotClass]{})
}

// needs are the caches that a runnable waits for.
func (e *Env) needs(r Runnable) []kube.Runner {
	if r.Needs != nil {
		return r.Needs
	}
	all := make([]kube.Runner, 0, len(e.informers))
	for _, w := range e.informers {
		all = append(all, w)
	}
	return all
}

// Caches lists the caches that a runnable needs, which may be none.
func Caches(needed ...kube.Runner) []kube.Runner { return append([]kube.Runner{}, needed...) }
