// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/binding"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// madeSkew is how much the clocks of a binder and the API server may differ.
const madeSkew = 2 * time.Minute

// LeftoverInput is all that a decision about a content may depend on whose snapshot may be gone.
type LeftoverInput struct {
	Content *snapv1.VolumeSnapshotContent
	// State is what is known of the snapshot, Live that it was read from the API server just now.
	State   SnapshotState
	Live    bool
	Options SnapshotOptions
}

// NextForLeftover decides about a content whose snapshot went without taking it along. That happens although
// finalizers come first: a deletion that the API server had begun to serve before the first one was written
// takes the snapshot away after that write was answered with success; and finalizers can be torn out.
//
// The content is deleted before it is marked, and not the other way round: a mark is also what retained
// contents carry, so it must not be all that a crash in between leaves.
func NextForLeftover(in LeftoverInput) SnapshotStep {
	c := in.Content
	switch {
	case !isOurMake(c) || c.Spec.Driver != in.Options.Driver && in.Options.Scope != All:
		return Ignore{"not made by a binder of ours"}
	case c.Spec.DeletionPolicy != snapv1.VolumeSnapshotContentDelete || isMarkedDeleted(c):
		return Ignore{"retained, or taken apart already"}
	case c.DeletionTimestamp != nil && !NeedsMark(c, in.Options):
		return Ignore{"our other half sees that it is being deleted"}
	case in.State != Gone:
		return Ignore{"its snapshot is there"}
	case !in.Live:
		return FetchSnapshot{}
	case c.DeletionTimestamp == nil:
		return DeleteContent{}
	default:
		return MarkContent{}
	}
}

// isOurMake tells that a binder made the content in this very cluster, for the snapshot that it points at.
func isOurMake(c *snapv1.VolumeSnapshotContent) bool {
	at, err := time.Parse(time.RFC3339, c.Annotations[wellknown.AnnMadeAt])
	apart := c.CreationTimestamp.Sub(at)
	return err == nil && apart.Abs() <= madeSkew && c.Spec.Source.VolumeHandle != nil && binding.IsNamedFor(c)
}

func madeAt(now time.Time) string { return metav1.NewTime(now).UTC().Format(time.RFC3339) }
