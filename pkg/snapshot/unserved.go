// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// unservedDelay is how long a driver's sidecar may leave a content untouched before users are told. A
// sidecar that lives marks or reports within seconds, and a restart of one is over by then.
const unservedDelay = 2 * time.Minute

// IsServed tells that some sidecar has touched the content: it is marked, or has a status.
func IsServed(c *snapv1.VolumeSnapshotContent) bool { return c.Status != nil || isMarked(c) }

// nextWaiting is for a snapshot that waits for the driver's sidecar. Without one it would wait for ever, and
// nothing else would say so.
func nextWaiting(in SnapshotInput) SnapshotStep {
	const why = "waiting for the driver"
	c := in.Content
	switch age := in.Now.Sub(c.CreationTimestamp.Time); {
	case in.UnservedTold || IsServed(c):
		return Ignore{why}
	case age < unservedDelay:
		return Wait{why, unservedDelay - age}
	}
	return Unserved{Told{Warning: true, Reason: wellknown.ReasonSnapshotUnserved, Message: fmt.Sprintf(
		"No sidecar of driver %s has touched VolumeSnapshotContent %s for two minutes: it is not installed, not running, or has no rights on contents",
		c.Spec.Driver, c.Name)}}
}

// nextForeign is for a snapshot of another driver, which is never written. Where each driver's snapshotter binds its own,
// nobody else sees one whose driver has none, or whose class has a slip in the driver's name: it would be silent for ever.
func nextForeign(in SnapshotInput, of owner) SnapshotStep {
	s := in.Snapshot
	if s.DeletionTimestamp != nil || s.Status != nil || len(ownFinalizers(s)) > 0 {
		return Ignore{"snapshot of another driver"}
	}
	if age := in.Now.Sub(s.CreationTimestamp.Time); age < unservedDelay {
		return Wait{"snapshot of another driver", unservedDelay - age}
	}
	told := Told{Warning: true, Reason: wellknown.ReasonSnapshotUnserved, Message: fmt.Sprintf(
		"No snapshotter of driver %s, which %s names, has touched this VolumeSnapshot for two minutes: it is not installed, not running, or the name of the driver is wrong",
		of.driver, of.from)}
	advice := adviseForeign(of, in.Class)
	told.Message += "; " + advice
	return Tell{told, advice}
}

// nextGoing is for a snapshot that waits until its content is gone.
func nextGoing(in SnapshotInput) SnapshotStep {
	const why = "waiting until its content is gone"
	c := in.Content
	// Our own other half asks the driver, also in the end.
	if c.Spec.Driver == in.Options.Driver || !has(c.Finalizers, wellknown.FinalizerContent) {
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
			"if that driver is gone for good, annotate the content with %s=yes, and it goes without the driver", c.Name, c.Spec.Driver, wellknown.AnnDriverGone)}}
}
