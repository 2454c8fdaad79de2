// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
)

// shared is the error of a volume that the driver gave for a claim and that somebody else has. Binding it
// would show the data of one claim to another; deleting it would destroy them.
type shared struct {
	handle, volume string
	// leaving tells that the PersistentVolume which has the volume goes, and the volume with it. The driver may have deleted that one by
	// now, and given its id to the next.
	leaving bool
}

func (s *shared) Error() string {
	if s.leaving {
		return fmt.Sprintf("the driver answered with volume %q, which PersistentVolume %s has, whose volume is to be deleted; the driver is asked again when that is gone", s.handle, s.volume)
	}
	return fmt.Sprintf("the driver answered with volume %q, which PersistentVolume %s has for another claim; nothing is bound or deleted", s.handle, s.volume)
}

func (s *shared) Advice() string {
	if s.leaving {
		return "see the events and the finalizers of PersistentVolume " + s.volume + " if it stays"
	}
	return "this is a fault of the driver, which has to give each volume another id: look at its log, and tell who maintains it"
}

// take makes sure that the volume of an attempt is nobody else's, before its PersistentVolume is written.
// The caches are asked; who they show is read live.
func (c *Controller) take(ctx context.Context, attempt *provision.Attempt, handle string) error {
	asks := taker{claim: attempt.Ref.UID, volume: attempt.Name()}
	for has := c.handles.take(handle, asks); has != asks; has = c.handles.take(handle, asks) {
		leaving := false
		if has.settled {
			live, err := c.fetchSharing(ctx, has.volume, handle, attempt)
			if err != nil {
				return err
			}
			if live == nil {
				// It was written and is gone again, so that the driver may give the same handle anew.
				c.handles.forget(handle, has)
				continue
			}
			leaving = isLeaving(live, attempt)
		}
		return &shared{handle: handle, volume: has.volume, leaving: leaving}
	}
	for _, cached := range kube.FindVolumes(c.Volumes, c.DriverName, handle, c.config.InTreeForm(handle)) {
		if isFor(cached, attempt) {
			continue
		}
		live, err := c.fetchSharing(ctx, cached.Name, handle, attempt)
		if err != nil {
			return err
		}
		if live != nil {
			return &shared{handle: handle, volume: live.Name, leaving: isLeaving(live, attempt)}
		}
	}
	return nil
}

// fetchSharing reads a PersistentVolume that should have a handle for another claim, nil when it does not.
func (c *Controller) fetchSharing(ctx context.Context, name, handle string, attempt *provision.Attempt) (*corev1.PersistentVolume, error) {
	live, err := kube.Fetch[*corev1.PersistentVolume](ctx, c.Client, kube.Key{Name: name})
	if kube.IsGone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading PersistentVolume %s, which may have volume %q: %w", name, handle, err)
	}
	holds, err := c.config.Holds(live, attempt, handle)
	if err != nil || !holds || isFor(live, attempt) {
		return nil, err
	}
	return live, nil
}

// isLeaving tells that a PersistentVolume goes by itself, and the volume with it. One with the name of the attempt's waits for the end of the
// attempt in turn.
func isLeaving(volume *corev1.PersistentVolume, attempt *provision.Attempt) bool {
	return provision.IsLeft(volume) && !hasName(attempt, volume.Name)
}

func isFor(volume *corev1.PersistentVolume, attempt *provision.Attempt) bool {
	ref := volume.Spec.ClaimRef
	return ref != nil && ref.UID == attempt.Ref.UID
}

// refuseShared ends an attempt whose volume is somebody else's. Other failures to find out leave it open, and so does a volume that goes:
// once that is gone, only the driver can say what it has made for this attempt.
func (c *Controller) refuseShared(ctx context.Context, attempt *provision.Attempt, err error) (reconcile.Result, error) {
	var other *shared
	if !errors.As(err, &other) {
		return reconcile.Result{}, err
	}
	if other.leaving {
		return c.awaitLeaving(ctx, c.lookup(keyOfRef(attempt.Ref)), attempt.Unmade(), err)
	}
	c.leave(attempt, attempt.Prior)
	return c.reject(ctx, c.lookup(keyOfRef(attempt.Ref)), provision.Reject{Err: err})
}

// awaitLeaving keeps an attempt until the PersistentVolume is gone that has what the driver gave for it.
func (c *Controller) awaitLeaving(ctx context.Context, claim *corev1.PersistentVolumeClaim, attempt *provision.Attempt, err error) (reconcile.Result, error) {
	c.handles.free(attempt.Ref.UID)
	c.memory.keep(attempt, c.Clock.Now())
	return c.rejectOpen(ctx, claim, attempt, err)
}

// drop forgets an attempt that nothing was written for. What is on record of a claim without one is parked,
// and stays.
func (c *Controller) drop(uid types.UID) *provision.Attempt {
	c.handles.free(uid)
	attempt := c.memory.forget(uid)
	if attempt != nil {
		c.finish(uid)
	}
	return attempt
}
