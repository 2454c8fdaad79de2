// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// createContent writes the content. If its name is taken, what has it is read and judged like any other
// content: it may be ours from before a crash, or somebody else's.
func (r *round) createContent(ctx context.Context, in snapshot.SnapshotInput, step snapshot.CreateContent) error {
	made, err := kube.Create(ctx, r.Client, &kube.Content{VolumeSnapshotContent: *step.Content})
	switch {
	case err == nil:
		klog.FromContext(ctx).V(2).Info("content created", "content", made.Name)
		r.Contents.Assume(made)
		r.ownContent, r.contentLive, r.absent = made, true, false
		return nil
	case apierrors.IsAlreadyExists(err):
		_, err = r.fetchContent(ctx, step.Content.Name)
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	r.Recorder.Warning(r.snapshot, wellknown.ReasonCreateSnapshotContentFailed,
		fmt.Sprintf("Error creating volume snapshot content object for snapshot %s: %s.", r.key, err))
	return r.shown(ctx, snapshot.RejectCreation(in, err), err)
}

// shown writes an error of the API server into the snapshot's status, and returns the error.
func (r *round) shown(ctx context.Context, reject snapshot.Reject, failure error) error {
	if reject.Status != nil {
		if err := r.writeStatus(ctx, reject.Status); err != nil {
			return err
		}
	}
	return failure
}

// bind makes a pre-provisioned content point back. Everything that it lacks goes with the one write, so
// that no half-bound content is ever seen.
func (r *round) bind(ctx context.Context, in snapshot.SnapshotInput, step snapshot.Bind) error {
	err := r.patchContent(ctx, "binding content", func(c *kube.Content) {
		c.Spec.VolumeSnapshotRef.UID = r.snapshot.UID
		kube.AddFinalizer(c, wellknown.FinalizerContent)
		if step.Class != "" {
			c.Spec.VolumeSnapshotClassName = &step.Class
		}
		for key, value := range step.Annotations {
			kube.SetAnnotation(c, key, value)
		}
		if step.Unmark {
			kube.RemoveAnnotation(c, wellknown.AnnBeingDeleted)
		}
	})
	if err == nil || kube.IsConflict(err) || ctx.Err() != nil {
		return err
	}
	reject := snapshot.RejectBinding(in, err)
	r.Recorder.Warning(r.snapshot, reject.Reason, reject.Message)
	return r.shown(ctx, reject, err)
}

// patchContent changes a content with the lock: what is decided about a binding must not hit a content that
// was bound to somebody else meanwhile.
func (r *round) patchContent(ctx context.Context, doing string, mutate func(*kube.Content)) error {
	written, err := kube.Patch(ctx, r.Client, r.content, mutate)
	switch {
	case kube.IsGone(err):
		r.Contents.Forget(kube.KeyOf(r.content))
		r.contentLive, r.absent = true, true
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", doing, err)
	}
	if !isGoing(written) {
		r.Contents.Assume(written)
	}
	r.ownContent, r.contentLive = written, true
	return nil
}

// deleteContent deletes the very content that was decided about. Its end is told by its own event.
func (r *round) deleteContent(ctx context.Context) (next, error) {
	err := kube.Delete(ctx, r.Client, r.content)
	switch {
	case err == nil:
		klog.FromContext(ctx).V(2).Info("content deleted", "content", r.content.Name)
		return ends, nil
	case kube.IsGone(err):
		r.contentLive, r.absent = true, true
		return goesOn, nil
	case !kube.IsConflict(err) && ctx.Err() == nil:
		r.Recorder.Warning(r.snapshot, wellknown.ReasonSnapshotContentDeleteError, "Failed to delete snapshot content API object: "+err.Error())
	}
	return ends, fmt.Errorf("deleting content: %w", err)
}

// abandonContent lets a content go that its driver's sidecar will never let go. The event is about the
// content as well as the snapshot: with both objects gone it is all that is left to look for.
func (r *round) abandonContent(ctx context.Context, step snapshot.AbandonContent) error {
	content := r.content
	err := r.patchContent(ctx, "letting go of a content without its driver", func(c *kube.Content) {
		kube.RemoveFinalizer(c, wellknown.FinalizerContent)
	})
	if err != nil {
		return err
	}
	if !r.absent && isGoing(r.ownContent) {
		r.contentLive, r.absent = true, true
	}
	r.Recorder.Warning(content, step.Reason, step.Message)
	r.tell(step.Told)
	return nil
}

// neglect tells once that nobody works on the content, and counts it until somebody does.
func (r *round) neglect(told snapshot.Told) {
	r.neglected.add(r.snapshot.UID, neglect{r.content.Spec.Driver, r.content.DeletionTimestamp != nil})
	r.tell(told)
}

func (r *round) protectSource(ctx context.Context) error {
	return r.patchSource(ctx, "protecting source claim", func(c *corev1.PersistentVolumeClaim) {
		kube.AddFinalizer(c, wellknown.FinalizerSourceClaim)
	})
}

func (r *round) releaseSource(ctx context.Context) error {
	return r.patchSource(ctx, "releasing source claim", func(c *corev1.PersistentVolumeClaim) {
		kube.RemoveFinalizer(c, wellknown.FinalizerSourceClaim)
	})
}

func (r *round) patchSource(ctx context.Context, doing string, mutate func(*corev1.PersistentVolumeClaim)) error {
	written, err := kube.Patch(ctx, r.Client, r.source, mutate)
	switch {
	case kube.IsGone(err), err == nil && isGoing(written):
		r.Claims.Forget(kube.KeyOf(r.source))
		r.sourceGone = true
		return nil
	case err == nil:
		r.Claims.Assume(written)
		r.ownSource = written
		return nil
	case !kube.IsConflict(err) && ctx.Err() == nil && r.snapshot != nil:
		r.Recorder.Warning(r.snapshot, wellknown.ReasonErrorPVCFinalizer, fmt.Sprintf("Failed to update PVC %s: %s", r.source.Name, err))
	}
	return fmt.Errorf("%s: %w", doing, err)
}
