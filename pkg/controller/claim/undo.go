// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/throttle"
)

// undoTries is how often a wrong volume is deleted before it counts as orphaned.
const undoTries = 5

// undo removes a volume that came back wrong. The driver may have answered about a volume that is in use
// already, and only badly: what any PersistentVolume holds is never deleted.
func (c *Controller) undo(ctx context.Context, s settlement, u provision.Undo) (reconcile.Result, error) {
	var other *shared
	if err := c.take(ctx, s.attempt, u.Handle); errors.As(err, &other) {
		return c.keepHeld(ctx, s, u, other)
	}
	holder, err := c.fetchHolder(ctx, u.Handle, s.attempt)
	switch {
	case err != nil:
		c.memory.keep(u.Attempt, c.Clock.Now())
		return c.reject(ctx, s.claim, provision.Reject{Err: fmt.Errorf("%w; looking for its PersistentVolume: %w", u.Err, err)})
	case holder != nil && isFor(holder, s.attempt):
		// The claim has its volume; only the answer about it was wrong.
		c.leave(s.attempt, u.Attempt.Prior)
		c.tell(ctx, s.claim, u.Err, fmt.Sprintf("%v; volume %s is kept, because PersistentVolume %s holds it", u.Err, u.Handle, holder.Name))
		return c.goBack(u.Attempt.Prior), nil
	case holder != nil:
		return c.keepHeld(ctx, s, u, &shared{handle: u.Handle, volume: holder.Name, leaving: isLeaving(holder, s.attempt)})
	}
	// Written before the removal is asked for: the next process must know of it, even if this one dies right after.
	begun := u.Begun()
	if u.IsRecorded() {
		if err := c.write(ctx, begun.Attempt); err != nil {
			c.memory.keep(u.Attempt, c.Clock.Now())
			return c.unwritten(ctx, s.claim, begun.Attempt, err)
		}
	}
	c.memory.keep(begun.Attempt, c.Clock.Now())
	isUnderstood := false
	defer func() {
		if !isUnderstood { // as after a call that makes a volume: a try of which nobody knows the end may still run
			open := *begun.Attempt.Undoing
			open.Open = true
			next := *begun.Attempt
			next.Undoing = &open
			c.memory.keep(&next, c.Clock.Now())
		}
	}()
	tries := c.deleteVolume(c.whileUnheld(marked(ctx, s.attempt), s.attempt, u.Handle), s, u.Handle, func() error {
		return c.checkUnheld(ctx, s.attempt, u.Handle)
	})
	isUnderstood = true
	if kept := c.memory.join(s.attempt.Ref.UID, c.Clock.Now()); kept != nil {
		begun.Attempt = kept // with what was found on the record meanwhile
	}
	return c.afterUndo(ctx, s, begun, tries)
}

// keepHeld ends the removal of what another PersistentVolume has, or puts it off until that is gone.
func (c *Controller) keepHeld(ctx context.Context, s settlement, u provision.Undo, other *shared) (reconcile.Result, error) {
	if other.leaving {
		return c.awaitLeaving(ctx, s.claim, u.Attempt, fmt.Errorf("%w; %w", u.Err, other))
	}
	c.leave(s.attempt, u.Attempt.Prior)
	return c.reject(ctx, s.claim, provision.Reject{Err: fmt.Errorf("%w; volume %s is kept, because PersistentVolume %s holds it", u.Err, u.Handle, other.volume)})
}

// goBack looks again soon when there is another attempt for the claim.
func (c *Controller) goBack(left *provision.Attempt) reconcile.Result {
	if left == nil {
		return reconcile.Result{}
	}
	return reconcile.Result{After: soon}
}

// afterUndo ends a removal, or keeps it for the next look. A removal that was found on the record meanwhile is not over with this one.
func (c *Controller) afterUndo(ctx context.Context, s settlement, u provision.Undo, tries []error) (reconcile.Result, error) {
	if kept := u.Attempt.Undoing; kept == nil || kept.Handle != u.Handle {
		return reconcile.Result{After: soon}, nil
	}
	if len(tries) > 0 {
		c.memory.keep(u.AfterFailure(tries...), c.Clock.Now())
		last := tries[len(tries)-1]
		if errors.Is(last, errHeld) {
			return reconcile.Result{After: soon}, nil // the next look finds who has it
		}
		return c.rejectOpen(ctx, s.claim, s.attempt, u.Orphaned(last))
	}
	c.leave(s.attempt, u.Attempt.Prior)
	return c.reject(ctx, s.claim, provision.Reject{Err: u.Err})
}

// finishUndo goes on with a removal of which nobody knows whether it was done.
func (c *Controller) finishUndo(ctx context.Context, in provision.ClaimInput, attempt *provision.Attempt) (reconcile.Result, error) {
	secrets, err := kube.FetchSecret(ctx, c.Client, secretKey(attempt.Secret))
	if err != nil {
		return c.lackSecret(ctx, in, attempt, err)
	}
	attempt = attempt.Equipped()
	return c.undo(ctx, settlement{claim: in.Claim, class: in.Class, attempt: attempt, secrets: secrets}, attempt.Resumed())
}

// errHeld is no failure: a PersistentVolume has the volume by now.
var errHeld = errors.New("a PersistentVolume holds the volume")

// checkUnheld looks for a holder once more: what was read before a wait is old.
func (c *Controller) checkUnheld(ctx context.Context, attempt *provision.Attempt, handle string) error {
	holder, err := c.fetchHolder(ctx, handle, attempt)
	if err == nil && holder != nil {
		return errHeld
	}
	return err
}

func (c *Controller) whileUnheld(ctx context.Context, attempt *provision.Attempt, handle string) context.Context {
	return throttle.WithRecheck(ctx, func(ctx context.Context) error { return c.checkUnheld(ctx, attempt, handle) })
}

// deleteVolume tries a few times at once: nobody would come back for the volume later. Before each repeat it asks whether
// it may. It returns the errors of all tries, none when the volume is gone.
func (c *Controller) deleteVolume(ctx context.Context, s settlement, handle string, may func() error) (tries []error) {
	for try := range undoTries {
		if try > 0 {
			if err := may(); err != nil {
				return append(tries, err)
			}
		}
		err := c.Driver.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: handle, Secrets: s.secrets})
		switch {
		case fault.IsNotFound(err):
			if !slices.ContainsFunc(tries, fault.MayRun) { // else one of ours may have done it
				c.tellUnknown(ctx, s, provision.UnknownToDriver(handle, err))
			}
			return nil
		case err == nil:
			return nil
		}
		tries = append(tries, err)
		if ctx.Err() != nil || errors.Is(err, errHeld) {
			break
		}
	}
	return tries
}

// tellUnknown tells that a wrong volume may be left, also when nobody waits for another one any more.
func (c *Controller) tellUnknown(ctx context.Context, s settlement, err error) {
	claim := s.claim
	if claim == nil {
		claim = ghost(s.attempt.Ref)
	}
	c.tell(ctx, claim, err, fault.Sentence(err))
}

// fetchHolder finds the PersistentVolume that holds a handle, or nil. The cache knows most of them, and may show one that is gone; that
// it has none proves nothing, so all are read live, in pages, with the likeliest name first.
func (c *Controller) fetchHolder(ctx context.Context, handle string, attempt *provision.Attempt) (*corev1.PersistentVolume, error) {
	for _, cached := range c.Volumes.ByIndex(kube.ByHandle, kube.HandleKey(c.DriverName, handle)) {
		live, err := kube.Fetch[*corev1.PersistentVolume](ctx, c.Client, kube.KeyOf(cached))
		switch {
		case kube.IsGone(err):
			continue // the driver may give the handle anew
		case err != nil:
			return nil, err
		}
		if holds, err := c.config.Holds(live, attempt, handle); err != nil || holds {
			return live, err
		}
	}
	likely, err := kube.Fetch[*corev1.PersistentVolume](ctx, c.Client, kube.Key{Name: attempt.Name()})
	switch {
	case apierrors.IsNotFound(err):
		return c.searchHolder(ctx, handle, attempt)
	case err != nil:
		return nil, err
	}
	if holds, err := c.config.Holds(likely, attempt, handle); err != nil || holds {
		return likely, err
	}
	return c.searchHolder(ctx, handle, attempt)
}

func (c *Controller) searchHolder(ctx context.Context, handle string, attempt *provision.Attempt) (*corev1.PersistentVolume, error) {
	for volume, err := range kube.FetchAll[*corev1.PersistentVolume](ctx, c.Client, "", metav1.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		if holds, err := c.config.Holds(volume, attempt, handle); err != nil || holds {
			return volume, err
		}
	}
	return nil, nil
}
