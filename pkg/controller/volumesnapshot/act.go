// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"context"
	"errors"
	"fmt"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// next says whether the round goes on after a step, and if not, when the next one begins.
type next struct {
	ends  bool
	after time.Duration
	// why is what is waited for.
	why string
}

var (
	goesOn = next{}
	ends   = next{ends: true}
)

// lookAgain is how soon what waits for others is looked at, should their event be missed.
const lookAgain = time.Minute

// act does one step.
func (r *round) act(ctx context.Context, in snapshot.SnapshotInput, step snapshot.SnapshotStep) (next, error) {
	switch step := step.(type) {
	case snapshot.Ignore:
		return ends, nil
	case snapshot.Wait:
		return next{ends: true, after: step.After, why: step.Why}, nil
	case snapshot.Tell:
		// The snapshotter of every driver comes to the same about a snapshot that none of them may write.
		r.Recorder.Shared(r.snapshot, step.Reason, step.Message)
		return ends, nil
	case snapshot.Unserved:
		// Noted before it is told, since looking again must not tell it again.
		r.neglect(step.Told)
		return goesOn, nil
	case snapshot.Reject:
		return ends, r.reject(ctx, step)
	case snapshot.WaitForRestore:
		// Waiting is no failure, so the event is a normal one.
		r.Recorder.Normal(r.snapshot, wellknown.ReasonSnapshotDeletePending, snapshot.BeingRestored(step.Claims))
		return next{ends: true, after: lookAgain, why: snapshot.BeingRestored(step.Claims)}, nil
	default:
		if n, reads, err := r.read(ctx, step); reads {
			return n, err
		}
		return r.write(ctx, in, step)
	}
}

// write does a step that changes something.
func (r *round) write(ctx context.Context, in snapshot.SnapshotInput, step snapshot.SnapshotStep) (next, error) {
	r.meters.begin(in)
	switch step := step.(type) {
	case snapshot.Protect:
		return goesOn, r.protect(ctx, step)
	case snapshot.ProtectSource:
		return goesOn, r.protectSource(ctx)
	case snapshot.ReleaseSource:
		return goesOn, r.releaseSource(ctx)
	case snapshot.CreateContent:
		return goesOn, r.createContent(ctx, in, step)
	case snapshot.ProtectContent:
		return goesOn, r.patchContent(ctx, "adding finalizer to content", func(c *kube.Content) {
			kube.AddFinalizer(c, wellknown.FinalizerContent)
		})
	case snapshot.Bind:
		return goesOn, r.bind(ctx, in, step)
	case snapshot.CopyStatus:
		return goesOn, r.copyStatus(ctx, step)
	case snapshot.MarkContent:
		return goesOn, r.patchContent(ctx, "marking content as being deleted", func(c *kube.Content) {
			kube.SetAnnotation(c, wellknown.AnnBeingDeleted, wellknown.AnnMarkYes)
		})
	case snapshot.DeleteContent:
		return r.deleteContent(ctx)
	case snapshot.AbandonContent:
		return goesOn, r.abandonContent(ctx, step)
	case snapshot.Release:
		return ends, r.release(ctx, step)
	default:
		return ends, fmt.Errorf("no way to do step %T", step)
	}
}

func (r *round) tell(told snapshot.Told) {
	if told.Warning {
		r.Recorder.Warning(r.snapshot, told.Reason, told.Message)
		return
	}
	r.Recorder.Normal(r.snapshot, told.Reason, told.Message)
}

// reject shows an error, and returns it so that the queue tries again: what is in the way may go without an
// event that reaches us.
func (r *round) reject(ctx context.Context, step snapshot.Reject) error {
	if step.Status != nil {
		if err := r.writeStatus(ctx, step.Status); err != nil {
			return err
		}
		if !step.Quiet {
			r.Recorder.Warning(r.snapshot, step.Reason, step.Message)
		}
	}
	err := errors.New(step.Message)
	if step.Waiting {
		return fault.Waiting(err)
	}
	return err
}

// writeStatus carries the lock: which fields are set already was decided on this very object.
func (r *round) writeStatus(ctx context.Context, status *snapv1.VolumeSnapshotStatus) error {
	written, err := kube.PatchStatus(ctx, r.Client, r.snapshot, func(s *snapv1.VolumeSnapshot) { s.Status = status })
	if err != nil {
		return r.unlessGone(fmt.Errorf("writing status of snapshot: %w", err))
	}
	r.Stance.look(written)
	r.assumeSnapshot(written)
	return nil
}

// unlessGone makes a snapshot that has vanished no error, and no ghost in the cache.
func (r *round) unlessGone(err error) error {
	if kube.IsGone(err) {
		r.Snapshots.Forget(r.key)
		r.vanished = true
		return nil
	}
	return err
}

func (r *round) assumeSnapshot(written *snapv1.VolumeSnapshot) {
	if isGoing(written) {
		r.Snapshots.AssumeGone(written)
	} else {
		r.Snapshots.Assume(written)
	}
	r.ownSnapshot, r.snapshotLive = written, true
}

func (r *round) fetchSnapshot(ctx context.Context) (next, error) {
	live, err := kube.Fetch[*snapv1.VolumeSnapshot](ctx, r.Client, r.key)
	switch {
	case kube.IsGone(err):
		return ends, nil
	case err != nil:
		return ends, fmt.Errorf("reading snapshot: %w", err)
	case live.UID != r.snapshot.UID:
		return ends, nil // a namesake; its own event brings it here
	}
	r.Stance.look(live)
	r.assumeSnapshot(live)
	return goesOn, nil
}

func (r *round) fetchContent(ctx context.Context, name string) (next, error) {
	live, err := kube.Fetch[*kube.Content](ctx, r.Client, kube.Key{Name: name})
	switch {
	case kube.IsGone(err):
		r.absent = true
	case err != nil:
		return ends, fmt.Errorf("reading content: %w", err)
	default:
		r.Contents.Assume(live)
		r.ownContent, r.absent = live, false
	}
	r.contentLive = true
	return goesOn, nil
}

// fetchVolume reads the volume live: one read for each snapshot costs less than a cache of all volumes.
func (r *round) fetchVolume(ctx context.Context, name string) error {
	volume, err := kube.Fetch[*corev1.PersistentVolume](ctx, r.Client, kube.Key{Name: name})
	switch {
	case err == nil:
		r.volume = volume
	case !kube.IsGone(err):
		return fmt.Errorf("failed to retrieve PV %s from the API server: %w", name, err)
	}
	r.volumeRead = true
	return nil
}

func (r *round) protect(ctx context.Context, step snapshot.Protect) error {
	written, err := kube.Patch(ctx, r.Client, r.snapshot, func(s *snapv1.VolumeSnapshot) {
		kube.AddFinalizer(s, step.Finalizers...)
		if step.Class != "" {
			s.Spec.VolumeSnapshotClassName = &step.Class
		}
	})
	switch {
	case err == nil:
		r.assumeSnapshot(written)
		return nil
	case !kube.IsGone(err) && !kube.IsConflict(err) && ctx.Err() == nil:
		r.Recorder.Warning(r.snapshot, wellknown.ReasonSnapshotFinalizerError, "Failed to check and update snapshot: "+err.Error())
	}
	return r.unlessGone(fmt.Errorf("protecting snapshot: %w", err))
}

func (r *round) copyStatus(ctx context.Context, step snapshot.CopyStatus) error {
	wasReady := isReady(r.snapshot)
	if err := r.writeStatus(ctx, step.Status); err != nil {
		return err
	}
	if !wasReady && !r.vanished && isReady(r.ownSnapshot) {
		reconcile.Reached(ctx, reconcile.Ready, r.ownSnapshot.CreationTimestamp.Time)
	}
	for _, told := range step.Told {
		r.tell(told)
	}
	klog.FromContext(ctx).V(2).Info("status written", "ready", step.Status.ReadyToUse)
	return nil
}

// release lets the snapshot go.
func (r *round) release(ctx context.Context, step snapshot.Release) error {
	written, err := kube.Patch(ctx, r.Client, r.snapshot, func(s *snapv1.VolumeSnapshot) {
		kube.RemoveFinalizer(s, step.Finalizers...)
	})
	if err != nil {
		return r.unlessGone(fmt.Errorf("removing finalizers of snapshot: %w", err))
	}
	r.forget(r.snapshot.UID)
	r.assumeSnapshot(written)
	if written.DeletionTimestamp != nil {
		reconcile.Reached(ctx, reconcile.Deleted, written.DeletionTimestamp.Time)
	}
	klog.FromContext(ctx).V(2).Info("snapshot released")
	return nil
}
