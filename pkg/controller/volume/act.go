// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/attempt"
	"github.com/csi-tandem/csi-tandem/pkg/driver"
	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/throttle"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// detachPoll is when a volume that waits for its nodes is looked at again, should the event of the last
// detachment get lost.
const detachPoll = time.Minute

// settlePoll is when a volume is looked at again whose making has not quite ended.
const settlePoll = time.Second

// unsettled is why it waits then.
const unsettled = "what was begun at the driver for its claim has no end yet"

// act does one step.
func (c *Controller) act(ctx context.Context, in provision.VolumeInput, step provision.VolumeStep) (reconcile.Result, error) {
	volume := in.Volume
	c.tellDoubt(in, step)
	switch s := step.(type) {
	case provision.Ignore:
		klog.FromContext(ctx).V(4).Info("nothing to do", "why", s.Why)
		if volume != nil {
			c.memory.settle(volume.UID)
		}
		return reconcile.Result{}, nil
	case provision.Wait:
		klog.FromContext(ctx).V(4).Info("waiting", "why", s.Why, "after", s.After)
		return reconcile.Result{After: s.After, Why: s.Why}, nil
	case provision.Protect:
		_, err := c.patchFinalizers(ctx, volume, func(o *corev1.PersistentVolume) { kube.AddFinalizer(o, wellknown.FinalizerVolume) })
		return reconcile.Result{}, err
	case provision.Unprotect:
		if s.Hollow != nil {
			c.memory.reconsider(volume)
			c.Recorder.Warning(volume, wellknown.ReasonVolumeFailedDelete, fault.Sentence(s.Hollow))
		}
		_, err := c.patchFinalizers(ctx, volume, dropFinalizer)
		return reconcile.Result{}, err
	case provision.WaitDetached:
		why := provision.StillAttached(s.Volume, s.Node)
		c.Recorder.Normal(volume, wellknown.ReasonVolumeFailedDelete, why)
		return reconcile.Result{After: detachPoll, Why: why}, nil
	case provision.Delete:
		return c.remove(ctx, in, s)
	case provision.Release:
		return reconcile.Result{}, c.release(ctx, volume)
	case provision.Reject:
		c.memory.reconsider(volume)
		c.tellClaim(ctx, s)
		return c.reject(ctx, volume, s.Err)
	case provision.Confirm:
		// Done by Reconcile. A second one would mean that a live object is not taken for one.
	}
	return reconcile.Result{}, fmt.Errorf("step %T has no effect here", step)
}

// tellDoubt tells of a volume that somebody has taken back while its deletion had no certain end.
func (c *Controller) tellDoubt(in provision.VolumeInput, step provision.VolumeStep) {
	if doubt := in.Doubted(step); doubt != nil && c.memory.takeAsked(in.Volume.UID) {
		c.Recorder.Warning(in.Volume, wellknown.ReasonVolumeFailedDelete, fault.Sentence(doubt))
	}
}

// reject tells why a volume cannot be deleted now.
func (c *Controller) reject(ctx context.Context, volume *corev1.PersistentVolume, err error) (reconcile.Result, error) {
	c.metrics.failed(volume)
	if ctx.Err() == nil && !kube.IsConflict(err) {
		c.Recorder.Warning(volume, wellknown.ReasonVolumeFailedDelete, fault.Sentence(err))
	}
	return reconcile.Result{}, err
}

// tellClaim tells a claim why its volume is not what it waits for: its own room only sees that there is one.
func (c *Controller) tellClaim(ctx context.Context, s provision.Reject) {
	if s.Claim == nil || c.Claims == nil || ctx.Err() != nil {
		return
	}
	claim, ok := c.Claims.Lookup(kube.Key{Namespace: s.Claim.Namespace, Name: s.Claim.Name})
	if ok && claim.UID == s.Claim.UID && claim.DeletionTimestamp == nil {
		c.Recorder.Warning(claim, wellknown.ReasonProvisioningFailed, fault.Sentence(s.Err))
	}
}

// remove lets the driver delete the volume, and then the PersistentVolume go. A crash between the two
// repeats the call, which the driver answers well for a volume that is gone.
func (c *Controller) remove(ctx context.Context, in provision.VolumeInput, d provision.Delete) (reconcile.Result, error) {
	volume, started := in.Volume, c.Clock.Now()
	secrets, err := c.fetchSecrets(ctx, in, d)
	if err != nil {
		return c.reject(ctx, volume, err)
	}
	if in.IsMigrated(volume) {
		ctx = driver.MarkMigrated(ctx)
	}
	twins := in.Twins
	ctx = throttle.WithRecheck(throttle.WithFlow(ctx, volume.Spec.StorageClassName), func(ctx context.Context) error {
		again, err := c.recheck(ctx, volume, d)
		if err == nil {
			twins = again.Twins
		}
		return err
	})
	err = c.Driver.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: d.Handle, Secrets: secrets})
	switch {
	case errors.Is(err, errChanged):
		return reconcile.Result{}, fault.RetryAfter(err, time.Millisecond)
	case fault.IsNotFound(err):
		c.Recorder.Warning(volume, wellknown.ReasonVolumeFailedDelete, fault.Sentence(provision.UnknownToDriver(d.Handle, err)))
	case err != nil:
		c.noteFailure(d.Handle, volume, twins, err)
		return c.reject(ctx, volume, err)
	}
	// From here on the driver is not asked again, however long the API server takes.
	c.memory.markDeleted(volume.Name, volume.UID)
	if err == nil { // who was told "not found" has deleted nothing: each twin asks for itself, with its own secret, and hears it for itself
		c.memory.takeAsked(volume.UID)
		c.markTwins(d.Handle, twins)
	} else {
		c.memory.markUnknown(volume)
	}
	c.metrics.deleted(volume, c.Clock.Since(started))
	reconcile.Reached(ctx, reconcile.Deleted, deletedAt(volume))
	klog.FromContext(ctx).V(2).Info("volume deleted", "handle", d.Handle)
	if c.Deleted != nil {
		c.Deleted(volume)
	}
	return reconcile.Result{}, c.release(ctx, volume)
}

// markTwins notes that the volume of the other PersistentVolumes is gone too: one of them may have been taken back during the call, and has to
// say that it is empty.
func (c *Controller) markTwins(handle string, twins []provision.Twin) {
	for _, twin := range c.ofHandle(handle, twins) {
		c.memory.markDeleted(twin.Name, twin.UID)
		c.memory.takeAsked(twin.UID)
		c.tidy(twin) // the watch may have told of its end during the call
	}
}

// noteFailure notes for all PersistentVolumes of a volume that it may be gone, after a deletion that has failed. A later refusal takes nothing of that
// back: the driver may have refused before it looked.
func (c *Controller) noteFailure(handle string, volume *corev1.PersistentVolume, twins []provision.Twin, err error) {
	e := fault.Of(err)
	if e == nil || e.Class != fault.Uncertain || fault.IsUnreached(err) {
		return
	}
	for _, v := range append(c.ofHandle(handle, twins), volume) {
		c.memory.markAsked(v.UID)
		c.tidy(v)
	}
}

// ofHandle are those of the other PersistentVolumes that have this very handle.
func (c *Controller) ofHandle(handle string, twins []provision.Twin) (same []*corev1.PersistentVolume) {
	for _, twin := range twins {
		if own, err := c.config().AsCSI(twin.PersistentVolume); err == nil && own.Spec.CSI != nil && own.Spec.CSI.VolumeHandle == handle {
			same = append(same, twin.PersistentVolume)
		}
	}
	return same
}

// deletedAt is since when a volume is to go, as far as it tells: one that its claim has let go does not.
func deletedAt(volume *corev1.PersistentVolume) time.Time {
	if volume.DeletionTimestamp == nil {
		return time.Time{}
	}
	return volume.DeletionTimestamp.Time
}

// errChanged is no failure: what was decided before the call does not hold any more when its turn has come.
var errChanged = errors.New("the volume is not to be deleted any more")

// recheck decides anew about a deletion that had to wait for its turn: what was read live before it is old.
func (c *Controller) recheck(ctx context.Context, volume *corev1.PersistentVolume, d provision.Delete) (provision.VolumeInput, error) {
	in, step, err := c.Look(ctx, reconcile.Key{Name: volume.Name})
	if err != nil {
		return in, err
	}
	if again, ok := step.(provision.Delete); !ok || again.Handle != d.Handle || in.Volume.UID != volume.UID {
		return in, errChanged
	}
	return in, nil
}

// fetchSecrets reads the secret for the deletion. Only one that certainly does not exist is ever done
// without, once it has been missing for long, and then for one try: the waiting begins anew after it.
func (c *Controller) fetchSecrets(ctx context.Context, in provision.VolumeInput, d provision.Delete) (map[string]string, error) {
	if d.Secret == nil {
		return nil, nil
	}
	uid := in.Volume.UID
	secrets, err := kube.FetchSecret(ctx, c.Client, kube.Key{Namespace: d.Secret.Namespace, Name: d.Secret.Name})
	switch {
	case err == nil:
		c.memory.clearMissing(uid)
		return secrets, nil
	case !apierrors.IsNotFound(err):
		return nil, provision.LackDeletionSecret(in.Volume, err)
	case d.MayLackSecret:
		c.memory.clearMissing(uid)
		klog.FromContext(ctx).Info("deleting the volume without the secret that it was made with", "err", err)
		return nil, nil
	default:
		c.memory.markMissing(uid, in.Now)
		return nil, provision.LackDeletionSecret(in.Volume, err)
	}
}

// release lets the PersistentVolume of a removed volume go: first our finalizer, then the object, which
// the patch has just given its newest version. A crash between the two finds it released and
// unprotected, and deletes it again.
func (c *Controller) release(ctx context.Context, volume *corev1.PersistentVolume) error {
	patched, err := c.patchFinalizers(ctx, volume, dropFinalizer)
	if err != nil || patched == nil {
		return err
	}
	if patched.DeletionTimestamp != nil {
		return nil // it goes by itself when the finalizers of others are off
	}
	if c.memory.isSent(patched) {
		return nil // what is seen here is from before the deletion, which the watch has not told of yet
	}
	if err := kube.Delete(ctx, c.Client, patched); err != nil && !kube.IsGone(err) {
		err = fmt.Errorf("deleting PersistentVolume %s: %w", patched.Name, err)
		if apierrors.IsForbidden(err) {
			_, err = c.reject(ctx, volume, err)
		}
		return err
	}
	c.markSent(patched)
	return nil
}

// isSettled tells whether nobody would make the volume anew that a step deletes or takes our protection
// from, not even the next process.
func (c *Controller) isSettled(ctx context.Context, volume *corev1.PersistentVolume, step provision.VolumeStep) (bool, error) {
	switch step.(type) {
	case provision.Unprotect, provision.Confirm, provision.Delete, provision.Release:
	default:
		return true, nil
	}
	if c.Settle == nil {
		return true, nil
	}
	settled, err := c.Settle(ctx, volume)
	if err == nil {
		return settled, nil
	}
	err = fmt.Errorf("PersistentVolume %s stays for now: %w", volume.Name, err)
	if refused := new(attempt.RefusedError); errors.As(err, &refused) {
		_, err = c.reject(ctx, volume, err) // all else passes by itself
	}
	return false, err
}

func dropFinalizer(o *corev1.PersistentVolume) { kube.RemoveFinalizer(o, wellknown.FinalizerVolume) }

// patchFinalizers changes our finalizer and no other; the lock makes a list that was read too early an
// ordinary retry. The result is nil when the object is gone.
func (c *Controller) patchFinalizers(ctx context.Context, volume *corev1.PersistentVolume, mutate func(*corev1.PersistentVolume)) (*corev1.PersistentVolume, error) {
	patched, err := kube.Patch(ctx, c.Client, volume, mutate)
	switch {
	case kube.IsGone(err):
		return nil, nil
	case apierrors.IsForbidden(err):
		err = fmt.Errorf("failed to modify finalizers on volume %s: %w", volume.Name, err)
		_, err = c.reject(ctx, volume, err)
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("failed to modify finalizers to %v on volume %s err: %w", volume.Finalizers, volume.Name, err)
	}
	if patched.DeletionTimestamp == nil || len(patched.Finalizers) > 0 {
		// Without finalizers a terminating object is gone with this answer, and must not be remembered.
		c.Volumes.Assume(patched)
	}
	return patched, nil
}
