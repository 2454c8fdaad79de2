// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// act does one step.
func (c *Controller) act(ctx context.Context, key reconcile.Key, in provision.ClaimInput, step provision.ClaimStep) (reconcile.Result, error) {
	switch s := step.(type) {
	case provision.Ignore:
		return c.ignore(ctx, key, s)
	case provision.Wait:
		klog.FromContext(ctx).V(2).Info("waiting", "why", s.Why, "after", s.After)
		return reconcile.Result{After: s.After, Why: s.Why}, nil
	case provision.AlreadyProvisioned:
		return c.recognize(ctx, in, s)
	case provision.LeaveToPopulator:
		c.Recorder.Normal(in.Claim, wellknown.ReasonProvisioning, provision.LeftToPopulator)
		return reconcile.Result{}, nil
	case provision.Create:
		return c.create(ctx, in, s.Attempt)
	case provision.Resume:
		return c.call(ctx, in, s.Attempt)
	case provision.Save:
		return c.save(ctx, s.Attempt)
	case provision.Reject:
		return c.reject(ctx, in.Claim, s)
	case provision.Reschedule:
		return c.reschedule(ctx, in.Claim, s.Err)
	case provision.BecomeOwner, provision.StandBack, provision.Discard, provision.FinishUndo:
		return c.actRarely(ctx, in, step)
	case provision.ReadSource, provision.ProtectSource, provision.ReadAttributes, provision.ReadNamespace, provision.AskRoom:
		// Done by Reconcile, which decides again after them.
	}
	return reconcile.Result{}, fmt.Errorf("step %T has no effect here", step)
}

// create sends the first request of an attempt.
func (c *Controller) create(ctx context.Context, in provision.ClaimInput, attempt *provision.Attempt) (reconcile.Result, error) {
	switch isOver, err := c.isServedAndOver(ctx, in.Claim); {
	case err != nil:
		return reconcile.Result{}, err
	case isOver:
		return reconcile.Result{After: lateCache, Why: "the claim is gone or has a volume, which the cache does not show yet"}, nil
	}
	c.warn(in, attempt)
	return c.call(ctx, in, attempt)
}

// lateCache is when a claim is looked at again that the cache shows as it was before.
const lateCache = time.Second

// isServedAndOver tells that a claim which had a volume does not wait for another one, whatever the cache shows: a watch that stands still shows a claim
// that is gone, whose volume goes as soon as it is made, which would be made again and again.
func (c *Controller) isServedAndOver(ctx context.Context, cached *corev1.PersistentVolumeClaim) (bool, error) {
	if !c.handles.served(cached.UID) {
		return false, nil
	}
	live, err := kube.Fetch[*corev1.PersistentVolumeClaim](ctx, c.Client, kube.KeyOf(cached))
	switch {
	case kube.IsGone(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("reading the claim, whose volume is gone: %w", err)
	}
	return live.UID != cached.UID || provision.IsAbandoned(live) || live.Spec.VolumeName != "", nil
}

// ignore ends what is remembered of a claim. Nothing of it is open, else it would not be ignored; a
// refusal is of no use for a claim that is gone, bound or changed.
func (c *Controller) ignore(ctx context.Context, key reconcile.Key, s provision.Ignore) (reconcile.Result, error) {
	c.drop(key.UID)
	klog.FromContext(ctx).V(4).Info("nothing to do", "why", s.Why)
	return reconcile.Result{}, nil
}

// recognize ends an attempt whose PersistentVolume turned out to be written.
func (c *Controller) recognize(ctx context.Context, in provision.ClaimInput, s provision.AlreadyProvisioned) (reconcile.Result, error) {
	if in.Attempt != nil {
		c.saved(ctx, in.Attempt, s.Volume, c.config.LeftBehind(in.Attempt, s.Volume))
	}
	return reconcile.Result{}, nil
}

// warn tells once per class and cause that its claims do not get quite what they ask for, and each claim what has no cause in common
// with others.
func (c *Controller) warn(in provision.ClaimInput, attempt *provision.Attempt) {
	for _, warning := range attempt.Warnings {
		if warning.Cause == "" || c.memory.isFirstWarning(in.Class.UID, warning.Cause) {
			c.Recorder.Warning(in.Claim, wellknown.ReasonTopologyIgnored, warning.Text)
		}
	}
}

// reject tells why nothing can be asked of the driver now. Conflicts are not for users, and what goes
// wrong because the process ends is nobody's fault.
func (c *Controller) reject(ctx context.Context, claim *corev1.PersistentVolumeClaim, r provision.Reject) (reconcile.Result, error) {
	switch {
	case r.Waiting && claim != nil && ctx.Err() == nil:
		c.Recorder.Normal(claim, wellknown.ReasonProvisioningFailed, fault.Sentence(r.Err))
		r.Err = fault.Waiting(r.Err)
	case !r.Waiting:
		c.metrics.failed(claim)
		if !r.Silent {
			c.tell(ctx, claim, r.Err, fault.Sentence(r.Err))
		}
	}
	if r.After > 0 {
		return reconcile.Result{}, fault.RetryAfter(r.Err, r.After)
	}
	return reconcile.Result{}, r.Err
}

// rejectOpen is reject for an attempt that may have made the volume. What is at the driver is told also when nobody waits for it any more.
func (c *Controller) rejectOpen(ctx context.Context, claim *corev1.PersistentVolumeClaim, attempt *provision.Attempt, err error) (reconcile.Result, error) {
	if claim == nil {
		c.tell(ctx, ghost(attempt.Ref), err, fault.Sentence(err))
	}
	return c.reject(ctx, claim, provision.Reject{Err: err})
}

// tell puts an error where the user looks, in the given words.
func (c *Controller) tell(ctx context.Context, claim *corev1.PersistentVolumeClaim, err error, text string) {
	if claim != nil && ctx.Err() == nil && !kube.IsConflict(err) {
		c.Recorder.Warning(claim, wellknown.ReasonProvisioningFailed, text)
	}
}

// settled passes on that an attempt has ended.
func (c *Controller) settled(attempt *provision.Attempt) {
	if attempt != nil && attempt.Source != nil && c.SourceFreed != nil {
		c.SourceFreed(*attempt.Source)
	}
}

// protect puts our finalizer on a source. It comes before the call, so that the data stays while the
// driver reads it; a crash between the two leaves a finalizer that controller/source lifts.
func (c *Controller) protect(ctx context.Context, state *provision.SourceState) (*provision.SourceState, error) {
	next := *state
	var err error
	if state.Claim != nil {
		next.Claim, err = kube.Patch(ctx, c.Client, state.Claim, func(o *corev1.PersistentVolumeClaim) {
			kube.AddFinalizer(o, wellknown.FinalizerCloneSource)
		})
		if err != nil {
			return state, fmt.Errorf("protecting source claim %s: %w", state.Claim.Name, err)
		}
		c.Claims.Assume(next.Claim)
		return &next, nil
	}
	next.Snapshot, err = kube.Patch(ctx, c.Client, state.Snapshot, addSnapshotFinalizer)
	switch {
	case apierrors.IsForbidden(err):
		// Clusters that gave rights before the finalizer existed still expect to restore.
		klog.FromContext(ctx).Info("the source snapshot stays unprotected: patching volumesnapshots is not allowed", "snapshot", state.Snapshot.Name)
		next.Snapshot, next.Unprotected = state.Snapshot, true
		return &next, nil
	case err != nil:
		return state, fmt.Errorf("protecting source snapshot %s: %w", state.Snapshot.Name, err)
	}
	return &next, nil
}

// reschedule gives the claim back to the scheduler. The resource version guards a choice that the
// scheduler has made meanwhile; the cached claim is the one that the decision was made on.
func (c *Controller) reschedule(ctx context.Context, claim *corev1.PersistentVolumeClaim, cause error) (reconcile.Result, error) {
	c.metrics.failed(claim)
	c.tell(ctx, claim, cause, fault.Sentence(cause))
	if _, ok := claim.Annotations[wellknown.AnnSelectedNode]; !ok {
		return reconcile.Result{}, cause
	}
	patched, err := kube.Patch(ctx, c.Client, claim, func(o *corev1.PersistentVolumeClaim) {
		kube.RemoveAnnotation(o, wellknown.AnnSelectedNode)
	})
	switch {
	case kube.IsGone(err):
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("giving claim back to the scheduler: %w", err)
	}
	c.Claims.Assume(patched)
	if c.config.Node != "" {
		c.memory.lose(keyOf(claim), c.Clock.Now()) // nodes that have not tried go first
	}
	klog.FromContext(ctx).Info("claim given back to the scheduler", "cause", cause)
	return reconcile.Result{}, nil
}
