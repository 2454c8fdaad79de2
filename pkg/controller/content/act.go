// SPDX-License-Identifier: Apache-2.0

package content

import (
	"context"
	"errors"
	"fmt"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// act does one step.
func (r *round) act(ctx context.Context, in snapshot.ContentInput, step snapshot.ContentStep) (next, error) {
	switch step := step.(type) {
	case snapshot.Ignore:
		return ends, r.failed
	case snapshot.Wait:
		return r.wait(step)
	case snapshot.Tell:
		r.tell(&step.Told)
		return ends, nil
	case snapshot.Create:
		return r.once(func() error { return r.create(ctx, in, step) })
	case snapshot.Poll:
		return r.once(func() error { return r.poll(ctx, in, step) })
	case snapshot.Delete:
		return r.once(func() error { return r.delete(ctx, in, step) })
	case snapshot.Remove:
		return r.once(func() error { return r.remove(ctx, in, step) })
	case snapshot.Record:
		return r.record(ctx, step)
	case snapshot.Confirm:
		return r.confirmed(ctx, in)
	default:
		return r.write(ctx, step)
	}
}

// write does a step that changes the content alone.
func (r *round) write(ctx context.Context, step snapshot.ContentStep) (next, error) {
	switch step := step.(type) {
	case snapshot.Mark:
		return r.unlessGone(r.mark(ctx, nil))
	case snapshot.DropMark:
		return r.unlessGone(r.dropMark(ctx))
	case snapshot.ClearStatus:
		return r.unlessGone(r.clearStatus(ctx, step.Told))
	case snapshot.ReleaseContent:
		return r.release(ctx, step)
	default:
		return ends, fmt.Errorf("no way to do step %T", step)
	}
}

// wait ends the round. After a failed call the error goes to the queue, which logs it, with the time that
// the machine has set.
func (r *round) wait(step snapshot.Wait) (next, error) {
	if r.failed != nil {
		return ends, fault.RetryAfter(r.failed, step.After)
	}
	return next{ends: true, after: step.After, why: step.Why}, nil
}

// once lets a round have one call.
func (r *round) once(call func() error) (next, error) {
	if r.called {
		return next{ends: true, after: soon}, nil
	}
	r.called = true
	return r.unlessGone(call())
}

// unlessGone lets the round go on, or fail. A content that has vanished ends it, and must not stay in the
// cache as what we last wrote.
func (r *round) unlessGone(err error) (next, error) {
	if kube.IsGone(err) {
		r.Contents.Forget(r.key)
		return ends, nil
	}
	return goesOn, err
}

// record writes a status that follows from no call.
func (r *round) record(ctx context.Context, step snapshot.Record) (next, error) {
	if err := r.report(ctx, step.Status, step.Told); err != nil {
		return r.unlessGone(err)
	}
	if step.Failure != "" {
		return ends, errors.New(step.Failure)
	}
	return goesOn, nil
}

// report writes a status, if there is a new one, and then tells users. The status is ours alone, so its
// write needs no lock; a lock would make every edit of a label by others cost a repeated driver call.
func (r *round) report(ctx context.Context, status *snapv1.VolumeSnapshotContentStatus, told *snapshot.Told) error {
	if status != nil {
		wasReady := isReady(r.content)
		written, err := kube.PatchOwnStatus(ctx, r.Client, r.content, func(c *kube.Content) { c.Status = status })
		if err != nil {
			return fmt.Errorf("writing status of content: %w", err)
		}
		r.assume(written)
		if !wasReady && isReady(written) {
			reconcile.Reached(ctx, reconcile.Ready, written.CreationTimestamp.Time)
		}
		klog.FromContext(ctx).V(2).Info("status written", "handle", status.SnapshotHandle, "ready", status.ReadyToUse)
	}
	r.tell(told)
	return nil
}

func isReady(content *kube.Content) bool {
	return content.Status != nil && content.Status.ReadyToUse != nil && *content.Status.ReadyToUse
}

func (r *round) tell(told *snapshot.Told) {
	if told != nil && told.Reason == wellknown.ReasonSnapshotOutcomeUnknown {
		r.letGo.Inc()
	}
	switch {
	case told == nil:
	case told.Warning:
		r.Recorder.Warning(r.content, told.Reason, told.Message)
	default:
		r.Recorder.Normal(r.content, told.Reason, told.Message)
	}
}

// mark writes the being-created mark, and with it parameters and name of the create where they are not on record. That they are not is what
// the copy shows, and another process of ours may have put its own there since, so the record needs the lock: whoever replaces it asks
// for a second snapshot. The mark alone is the same whoever writes it.
func (r *round) mark(ctx context.Context, create *snapshot.Create) error {
	patch := kube.PatchOwnFields[*kube.Content]
	if create != nil {
		patch = kube.Patch[*kube.Content]
	}
	marked, err := patch(ctx, r.Client, r.content, func(c *kube.Content) {
		kube.SetAnnotation(c, wellknown.AnnBeingCreated, wellknown.AnnMarkYes)
		if create != nil && c.DeletionTimestamp == nil {
			kube.AddFinalizer(c, wellknown.FinalizerContent) // which other binders put on in a write of their own, perhaps too late
		}
		if create != nil {
			kube.SetAnnotation(c, wellknown.AnnSnapshotName, create.Request.GetName())
		}
		if create != nil && create.Parameters != "" {
			kube.SetAnnotation(c, wellknown.AnnSnapshotParameters, create.Parameters)
		}
	})
	if err != nil {
		return fmt.Errorf("marking content as being created: %w", err)
	}
	r.content = marked
	r.assume(marked)
	return nil
}

func (r *round) dropMark(ctx context.Context) error {
	written, err := kube.PatchOwnFields(ctx, r.Client, r.content, func(c *kube.Content) {
		kube.RemoveAnnotation(c, wellknown.AnnBeingCreated)
	})
	if err != nil {
		return fmt.Errorf("removing the being-created mark: %w", err)
	}
	r.assume(written)
	return nil
}

// confirmed is confirm, and tells users what right is missing for it: nobody else sees why the content does not go.
func (r *round) confirmed(ctx context.Context, in snapshot.ContentInput) (next, error) {
	next, err := r.confirm(ctx)
	if in.Content.DeletionTimestamp != nil && apierrors.IsForbidden(err) {
		return r.record(ctx, snapshot.LackRight(in, err))
	}
	return next, err
}

// confirm reads what permits a deletion. The cache is not enough: it may show a policy that was changed, or
// miss a snapshot that lives.
func (r *round) confirm(ctx context.Context) (next, error) {
	content, err := kube.Fetch[*kube.Content](ctx, r.Client, r.key)
	switch {
	case kube.IsGone(err):
		return ends, nil
	case err != nil:
		return ends, fmt.Errorf("reading content: %w", err)
	case content.UID != r.content.UID:
		return ends, nil // a namesake; its own events bring it here
	}
	r.assume(content)
	// That a snapshot is being deleted cannot be taken back, so this one answer of the cache is certain.
	state := r.cachedState(content)
	var found *snapv1.VolumeSnapshot
	if state != snapshot.Deleting {
		if found, state, err = r.fetchSnapshot(ctx, content); err != nil {
			return ends, err
		}
	}
	counted := false
	switch {
	case r.Snapshots == nil:
		counted, err = r.searchCounting(ctx, content, found, state)
	case content.DeletionTimestamp != nil:
		counted, err = r.isCountedOn(ctx, content)
	}
	if err != nil {
		return ends, err
	}
	if counted {
		state = snapshot.Alive
	}
	if r.shared, err = r.fetchSharer(ctx, content); err != nil {
		return ends, err
	}
	r.live, r.state, r.taken = true, state, takenOf(found, content)
	return goesOn, nil
}

// fetchSnapshot reads the snapshot of the name that the content refers to, and says what it means for the content; nil where there is none.
func (r *round) fetchSnapshot(ctx context.Context, content *kube.Content) (*snapv1.VolumeSnapshot, snapshot.SnapshotState, error) {
	found, err := kube.Fetch[*snapv1.VolumeSnapshot](ctx, r.Client, snapshotKey(content))
	switch {
	case kube.IsGone(err):
		return nil, snapshot.StateOf(&content.VolumeSnapshotContent, nil), nil
	case apierrors.IsForbidden(err):
		return nil, snapshot.Unknown, nil
	case err != nil:
		return nil, snapshot.Unknown, fmt.Errorf("reading the content's snapshot: %w", err)
	}
	return found, snapshot.StateOf(&content.VolumeSnapshotContent, found), nil
}

// clearStatus takes back what said that data exists, and the error of an earlier try, which is over. What is left is an empty status, also
// where none was: without one the handle in the source would still count.
func (r *round) clearStatus(ctx context.Context, told *snapshot.Told) error {
	written, err := kube.PatchOwnStatus(ctx, r.Client, r.content, func(c *kube.Content) {
		if c.Status == nil {
			c.Status = &snapv1.VolumeSnapshotContentStatus{}
		}
		c.Status.SnapshotHandle, c.Status.ReadyToUse, c.Status.CreationTime, c.Status.RestoreSize = nil, nil, nil, nil
		c.Status.Error = nil
	})
	if err != nil {
		return fmt.Errorf("clearing status of content: %w", err)
	}
	r.tell(told)
	r.assume(written)
	return nil
}

// release takes our finalizer off, with the lock, as the list belongs to others as well.
func (r *round) release(ctx context.Context, step snapshot.ReleaseContent) (next, error) {
	written, err := kube.Patch(ctx, r.Client, r.content, func(c *kube.Content) {
		kube.RemoveFinalizer(c, wellknown.FinalizerContent)
		kube.RemoveAnnotation(c, wellknown.AnnBeingCreated)
	})
	if err != nil {
		return r.unlessGone(fmt.Errorf("removing finalizer of content: %w", err))
	}
	r.tell(step.Told)
	r.assume(written)
	if written.DeletionTimestamp != nil {
		reconcile.Reached(ctx, reconcile.Deleted, written.DeletionTimestamp.Time)
	}
	klog.FromContext(ctx).V(2).Info("content released")
	return ends, nil
}
