// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// save writes the PersistentVolume of a volume that the driver has made. It is tried for as long as it
// takes, and the volume is never given up meanwhile: deleting it because of a slow API server would only
// make another one. A crash here costs one more CreateVolume, which finds the volume by its name.
func (c *Controller) save(ctx context.Context, attempt *provision.Attempt) (reconcile.Result, error) {
	volume, err := provision.BuildVolume(attempt, attempt.Made)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("building the PersistentVolume of %s: %w", attempt.Name(), err)
	}
	if err := c.take(ctx, attempt, attempt.Made.GetVolumeId()); err != nil {
		return c.refuseShared(ctx, attempt, err)
	}
	stored, err := kube.Create(ctx, c.Client, volume)
	if apierrors.IsAlreadyExists(err) {
		stored, err = c.fetchOwn(ctx, attempt)
	}
	if err != nil {
		if isStray(err) {
			return c.discard(ctx, attempt)
		}
		err = fmt.Errorf("saving PersistentVolume %s: %w", volume.Name, err)
		if isUnstorable(err) {
			return c.undoUnstorable(ctx, attempt, err)
		}
		if isRefusal(err) {
			return c.rejectOpen(ctx, c.lookup(keyOfRef(attempt.Ref)), attempt, provision.LackRight(err))
		}
		return reconcile.Result{}, err
	}
	c.Volumes.Assume(stored)
	c.saved(ctx, attempt, stored, nil)
	return reconcile.Result{}, nil
}

// saved ends an attempt whose PersistentVolume is written. Left is what may stay at the driver, nil for nothing; it is told also when nobody
// waits for the volume any more.
func (c *Controller) saved(ctx context.Context, attempt *provision.Attempt, stored *corev1.PersistentVolume, left error) {
	ref := attempt.Ref
	took := c.memory.since(ref.UID, c.Clock.Now())
	c.handles.settle(ref.UID)
	c.finish(ref.UID)
	c.settled(c.memory.forget(ref.UID))
	c.forgetRooms()
	klog.FromContext(ctx).V(2).Info("volume provisioned", "volume", stored.Name)
	claim := c.lookup(keyOfRef(ref))
	switch {
	case left != nil:
		c.tell(ctx, cmp.Or(claim, ghost(ref)), left, fault.Sentence(left))
	case claim != nil:
		c.Recorder.Normal(claim, wellknown.ReasonProvisioningSucceeded, "Successfully provisioned volume "+stored.Name)
	}
	if claim != nil {
		c.metrics.provisioned(claim, took)
		reconcile.Reached(ctx, reconcile.Provisioned, askedAt(claim))
		if text := c.config.Misplacement(attempt, c.Topology); text != "" {
			c.Recorder.Warning(claim, wellknown.ReasonTopologyIgnored, text)
		}
		if text := provision.OtherSource(attempt); text != "" && c.memory.isFirstWarning(attempt.Class, "content source") {
			c.Recorder.Warning(claim, wellknown.ReasonSourceDiffers, text)
		}
	}
	if c.Provisioned != nil {
		c.Provisioned(stored)
	}
}

// isRefusal tells the errors that a repeat alone will not cure; all others pass, and are not for users.
func isRefusal(err error) bool {
	var other *taken
	return errors.As(err, &other) || apierrors.IsForbidden(err)
}

// fetchOwn reads the PersistentVolume that has the name already. It is live because it was written just
// now, by a call whose answer was lost or by a process before this one; it is ours only if it is for the
// same claim and the same volume.
func (c *Controller) fetchOwn(ctx context.Context, attempt *provision.Attempt) (*corev1.PersistentVolume, error) {
	found, err := kube.Fetch[*corev1.PersistentVolume](ctx, c.Client, kube.Key{Name: attempt.Name()})
	if err != nil {
		return nil, err
	}
	ref := found.Spec.ClaimRef
	sameClaim := ref != nil && ref.UID == attempt.Ref.UID
	sameVolume, err := c.config.Holds(found, attempt, attempt.Made.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if !sameClaim || !sameVolume {
		return nil, &taken{name: attempt.Name(), handle: attempt.Made.GetVolumeId(), stray: sameClaim && c.config.Node != ""}
	}
	return found, nil
}

// taken is the error of a name that belongs to another volume. Its text goes to the user, who has to act.
type taken struct {
	name, handle string
	// stray tells that the claim has a volume on another node, of which the driver of this one knows nothing.
	stray bool
}

func isStray(err error) bool {
	var other *taken
	return errors.As(err, &other) && other.stray
}

func (t *taken) Error() string {
	return fmt.Sprintf("it exists already and is not for this claim or not volume %q; nothing is deleted", t.handle)
}
