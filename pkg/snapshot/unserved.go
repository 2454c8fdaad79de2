// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

const (
	// unservedDelay is how long a driver's sidecar may leave a content untouched before users are told. A
	// sidecar that lives marks or reports within seconds, and a restart of one is over by then.
	unservedDelay = 2 * time.Minute
	// unheardDelay is how long one that finds its mark there may be at work before it has to report something: many may wait for
	// the driver of a node, and the first call to it may take long.
	unheardDelay = 10 * time.Minute
)

// IsServed tells that some sidecar has touched the content: it has a status, or is marked, unless by its own binder for another node.
func IsServed(c *snapv1.VolumeSnapshotContent, options SnapshotOptions) bool {
	return c.Status != nil || isMarked(c) && !isMarkedAhead(c, options)
}

// isMarkedAhead tells that the mark is one that a binder of ours made the content with, for the sidecar of another node.
func isMarkedAhead(c *snapv1.VolumeSnapshotContent, options SnapshotOptions) bool {
	return c.Spec.Driver == options.Driver && !isOurHalf(c, options) && c.Annotations[wellknown.AnnMadeAt] != ""
}

// isOurHalf tells that our own other half works on the content. One that serves a single node leaves alone what is for another.
func isOurHalf(c *snapv1.VolumeSnapshotContent, options SnapshotOptions) bool {
	return c.Spec.Driver == options.Driver && (options.Node == "" || c.Labels[wellknown.LabelManagedBy] == wellknown.NodeLabel(options.Node))
}

// nextWaiting is for a snapshot that waits for the driver's sidecar. Without one it would wait for ever, and
// nothing else would say so.
func nextWaiting(in SnapshotInput) SnapshotStep {
	const why = "waiting for the driver"
	c, delay := in.Content, unservedDelay
	ahead := isMarkedAhead(c, in.Options)
	if ahead {
		delay = unheardDelay
	}
	switch age := in.Now.Sub(c.CreationTimestamp.Time); {
	case in.UnservedTold || IsServed(c, in.Options):
		return Ignore{why}
	case age < delay:
		return Wait{why, delay - age}
	}
	if ahead {
		return Unserved{unheard(c)}
	}
	return Unserved{Told{Warning: true, Reason: wellknown.ReasonSnapshotUnserved, Message: fmt.Sprintf(
		"No sidecar of driver %s has touched VolumeSnapshotContent %s for two minutes: it is not installed, not running, or has no rights on contents",
		c.Spec.Driver, c.Name)}}
}

// unheard tells that the sidecar of another node says nothing.
func unheard(c *snapv1.VolumeSnapshotContent) Told {
	node := c.Labels[wellknown.LabelManagedBy]
	if node == "" {
		return Told{Warning: true, Reason: wellknown.ReasonSnapshotUnserved, Message: fmt.Sprintf(
			"VolumeSnapshotContent %s is for no node: the volume does not say where it is; set its label %s to the node whose driver can take the snapshot",
			c.Name, wellknown.LabelManagedBy)}
	}
	return Told{Warning: true, Reason: wellknown.ReasonSnapshotUnserved, Message: fmt.Sprintf(
		"The sidecar of driver %s on node %s has said nothing about VolumeSnapshotContent %s for ten minutes: the node is gone, the sidecar does not run there or has no rights on contents, or the driver takes long; "+
			"see to the pods of the driver on that node, or, if it is gone for good, delete this VolumeSnapshot", c.Spec.Driver, node, c.Name)}
}

// nextForeign is for a snapshot of another driver, which is never written. Where each driver's snapshotter binds its own,
// nobody else sees one whose driver has none, or whose class has a slip in the driver's name: it would be silent for ever.
func nextForeign(in SnapshotInput, of owner) SnapshotStep {
	s := in.Snapshot
	if s.DeletionTimestamp != nil && in.Content == nil && in.GoneDriver == "" {
		return nextOrphan(in)
	}
	if s.DeletionTimestamp != nil || s.Status != nil || len(ownFinalizers(s)) > 0 {
		return Ignore{"snapshot of another driver"}
	}
	if age := in.Now.Sub(foreignSince(in)); age < unservedDelay {
		return Wait{"snapshot of another driver", unservedDelay - age}
	}
	told := Told{Warning: true, Reason: wellknown.ReasonSnapshotUnserved, Message: fmt.Sprintf(
		"No snapshotter of driver %s, which %s names, has touched this VolumeSnapshot for two minutes: it is not installed, not running, may not bind (its log and /readyz name the right), or the name of the driver is wrong",
		of.driver, of.from)}
	advice := adviseForeign(of, in.Class)
	told.Message += "; " + advice
	return Tell{told, advice}
}

// foreignSince is since when the other driver's snapshotter can have known that the snapshot is for it: who makes the class that
// was missing, or corrects the driver in it, should not hear at once that nobody has done anything.
func foreignSince(in SnapshotInput) time.Time {
	since := in.Snapshot.CreationTimestamp.Time
	later := func(at time.Time) {
		if at.After(since) {
			since = at
		}
	}
	if in.Content != nil {
		later(in.Content.CreationTimestamp.Time)
		return since
	}
	if in.Class != nil {
		later(in.Class.CreationTimestamp.Time)
		later(in.ClassSince)
	}
	return since
}

// nextGoing is for a snapshot that waits until its content is gone.
func nextGoing(in SnapshotInput) SnapshotStep {
	const why = "waiting until its content is gone"
	c := in.Content
	// Our own other half asks the driver, also in the end.
	if isOurHalf(c, in.Options) || !has(c.Finalizers, wellknown.FinalizerContent) {
		return Ignore{why}
	}
	if c.Annotations[wellknown.AnnDriverGone] == wellknown.AnnMarkYes {
		return AbandonContent{Told{Warning: true, Reason: wellknown.ReasonSnapshotAbandoned, Message: fmt.Sprintf(
			"Let go without its driver %s, because annotation %s says so; what the driver has stored is still there", c.Spec.Driver, wellknown.AnnDriverGone)}}
	}
	switch age := in.Now.Sub(c.DeletionTimestamp.Time); {
	case in.UnservedTold:
		return Ignore{why}
	case age < unservedDelay:
		return Wait{why, unservedDelay - age}
	}
	return Unserved{Told{Warning: true, Reason: wellknown.ReasonSnapshotUnserved, Message: fmt.Sprintf(
		"VolumeSnapshotContent %s waits for the sidecar of driver %s to delete it, for two minutes now; "+
			"if that driver is gone for good, annotate the content with %s=yes, and it goes without the driver", c.Name, sidecarOf(c), wellknown.AnnDriverGone)}}
}

// sidecarOf names the driver, and the node if the content is for one.
func sidecarOf(c *snapv1.VolumeSnapshotContent) string {
	if node := c.Labels[wellknown.LabelManagedBy]; node != "" {
		return c.Spec.Driver + " on node " + node
	}
	return c.Spec.Driver
}
