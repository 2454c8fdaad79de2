// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"slices"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/binding"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// nextDeletion takes apart what belongs to a snapshot that is being deleted. A content that does not point
// back is not its own and stays as it is.
func nextDeletion(in SnapshotInput) SnapshotStep {
	held := ownFinalizers(in.Snapshot)
	if len(held) == 0 {
		return Ignore{"being deleted, and held by others only"}
	}
	if in.Content != nil && binding.PointsAt(in.Content, in.Snapshot) {
		if step := nextContentOfDeleted(in); step != nil {
			return step
		}
	} else if name := binding.ContentName(in.Snapshot); !in.ContentLive && name != "" {
		// With the finalizers goes the last thing that knows of the content. A cache that lags behind, as
		// after a change of leader, would orphan it.
		return FetchContent{name}
	}
	if isSourceFree(in) {
		return ReleaseSource{}
	}
	return Release{held}
}

// nextContentOfDeleted returns nil when the snapshot may go.
func nextContentOfDeleted(in SnapshotInput) SnapshotStep {
	c := in.Content
	switch {
	case isHeldByRestore(in):
		return WaitForRestore{in.Restoring}
	case NeedsMark(c, in.Options) && !isMarkedDeleted(c):
		return MarkContent{}
	case c.Spec.DeletionPolicy != snapv1.VolumeSnapshotContentDelete:
		return nil
	case c.DeletionTimestamp == nil:
		return DeleteContent{}
	case isSourceFree(in):
		return ReleaseSource{}
	default:
		return nextGoing(in)
	}
}

// isHeldByRestore tells that the data may be being read. A provisioner puts its finalizer on before it calls the driver, and none
// can be put on what is being deleted: a claim that has none by now is refused, and would wait for the deletion as the deletion
// for it. Only a provisioner without the right to protect snapshots may be in a call; that one is given time.
func isHeldByRestore(in SnapshotInput) bool {
	isRecent := in.Now.Sub(in.Snapshot.DeletionTimestamp.Time) < restorePatience
	return IsRead(in.Snapshot) || len(in.Restoring) > 0 && isRecent
}

// NeedsMark tells that whoever deletes at the driver is told of the end of the snapshot by the being-deleted mark. Our own other
// half needs none: it sees that the snapshot is being deleted. Others do, and users know it from retained contents. A process
// that serves a single node has no cache of all snapshots to see it in.
func NeedsMark(c *snapv1.VolumeSnapshotContent, options SnapshotOptions) bool {
	return c.Spec.DeletionPolicy != snapv1.VolumeSnapshotContentDelete || c.Spec.Driver != options.Driver || options.Distributed
}

func isMarkedDeleted(c *snapv1.VolumeSnapshotContent) bool {
	_, marked := c.Annotations[wellknown.AnnBeingDeleted]
	return marked
}

// IsLeftBehind tells that a content was taken for a snapshot, which is known to have gone, and has to go with it. A marked one
// was taken apart in order: if it is there still, it was to be retained, whatever its policy says by now.
func IsLeftBehind(c *snapv1.VolumeSnapshotContent, namespace, name string, uid types.UID) bool {
	ref := c.Spec.VolumeSnapshotRef
	return c.Spec.Source.VolumeHandle != nil && c.Spec.DeletionPolicy == snapv1.VolumeSnapshotContentDelete && !isMarkedDeleted(c) &&
		uid != "" && ref.UID == uid && ref.Namespace == namespace && ref.Name == name
}

// RestoresFrom lists the snapshots that a claim is to be filled from, as namespace/name; a claim names one,
// in up to two fields.
func RestoresFrom(claim *corev1.PersistentVolumeClaim) []string {
	var names []string
	add := func(apiGroup *string, kind, namespace, name string) {
		full := namespace + "/" + name
		if kind == wellknown.KindVolumeSnapshot && apiGroup != nil && *apiGroup == wellknown.SnapshotGroup && !slices.Contains(names, full) {
			names = append(names, full)
		}
	}
	if source := claim.Spec.DataSource; source != nil {
		add(source.APIGroup, source.Kind, claim.Namespace, source.Name)
	}
	if source := claim.Spec.DataSourceRef; source != nil {
		namespace := claim.Namespace
		if source.Namespace != nil && *source.Namespace != "" {
			namespace = *source.Namespace
		}
		add(source.APIGroup, source.Kind, namespace, source.Name)
	}
	return names
}

// IsRead tells that the snapshot carries the provisioner's finalizer: it stays while a call may read the data,
// also when the claim is gone. None can be added to what is being deleted, so a "no" is for good then.
func IsRead(s *snapv1.VolumeSnapshot) bool {
	return has(s.Finalizers, wellknown.FinalizerSnapshotAsSource)
}

// Delays tells that the deletion of a snapshot has to wait for the claim. One that was made after the
// deletion had begun is refused by the provisioner; the two would wait for each other.
func Delays(claim *corev1.PersistentVolumeClaim, s *snapv1.VolumeSnapshot) bool {
	return IsRestoring(claim) && (s.DeletionTimestamp == nil || !claim.CreationTimestamp.After(s.DeletionTimestamp.Time))
}

// IsRestoring tells that the claim is still to be filled. An empty phase is that of a claim which nobody
// has looked at yet.
func IsRestoring(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Status.Phase == corev1.ClaimPending || claim.Status.Phase == ""
}

// UsesSource tells that the snapshot keeps its source claim from going: it lives, is to be taken from it,
// and is not ready.
func UsesSource(s *snapv1.VolumeSnapshot) bool {
	return binding.IsDynamic(s) && s.DeletionTimestamp == nil && !isReady(s)
}

// isSourceFree tells that the claim carries our finalizer and no living snapshot needs it.
func isSourceFree(in SnapshotInput) bool {
	if in.Claim == nil || !has(in.Claim.Finalizers, wellknown.FinalizerSourceClaim) || in.ClaimInUse {
		return false
	}
	return in.Snapshot == nil || !UsesSource(in.Snapshot)
}

// missingFinalizers are those that a living snapshot should have. Both come with the first write, although
// the second one is needed only once there is a content: that saves a write.
func missingFinalizers(s *snapv1.VolumeSnapshot, policy snapv1.DeletionPolicy) []string {
	var missing []string
	if !has(s.Finalizers, wellknown.FinalizerSnapshotSource) {
		missing = append(missing, wellknown.FinalizerSnapshotSource)
	}
	if policy == snapv1.VolumeSnapshotContentDelete && !has(s.Finalizers, wellknown.FinalizerSnapshotBound) {
		missing = append(missing, wellknown.FinalizerSnapshotBound)
	}
	return missing
}

// ownFinalizers are those of ours that the snapshot carries.
func ownFinalizers(s *snapv1.VolumeSnapshot) []string {
	var held []string
	for _, f := range []string{wellknown.FinalizerSnapshotSource, wellknown.FinalizerSnapshotBound} {
		if has(s.Finalizers, f) {
			held = append(held, f)
		}
	}
	return held
}

func has(list []string, item string) bool { return slices.Contains(list, item) }

func isReady(s *snapv1.VolumeSnapshot) bool {
	return s.Status != nil && s.Status.ReadyToUse != nil && *s.Status.ReadyToUse
}

// isSettled tells that the snapshot has once been taken: then its data exists, or is lost.
func isSettled(s *snapv1.VolumeSnapshot) bool {
	return isReady(s) || s.Status != nil && s.Status.CreationTime != nil
}
