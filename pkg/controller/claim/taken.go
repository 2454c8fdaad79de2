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
type shared struct{ handle, volume string }

func (s *shared) Error() string {
	return fmt.Sprintf("the driver answered with volume %q, which PersistentVolume %s has for another claim; nothing is bound or deleted", s.handle, s.volume)
}

func (s *shared) Advice() string {
	return "this is a fault of the driver, which has to give each volume another id: look at its log, and tell who maintains it"
}

// take makes sure that the volume of an attempt is nobody else's, before its PersistentVolume is written.
// The caches are asked; who they show is read live.
func (c *Controller) take(ctx context.Context, attempt *provision.Attempt, handle string) error {
	asks := taker{claim: attempt.Ref.UID, volume: attempt.Name()}
	for has := c.handles.take(handle, asks); has != asks; has = c.handles.take(handle, asks) {
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
		}
		return &shared{handle: handle, volume: has.volume}
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
			return &shared{handle: handle, volume: live.Name}
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

func isFor(volume *corev1.PersistentVolume, attempt *provision.Attempt) bool {
	ref := volume.Spec.ClaimRef
	return ref != nil && ref.UID == attempt.Ref.UID
}

// refuseShared ends an attempt whose volume is somebody else's. Other failures to find out leave it open.
func (c *Controller) refuseShared(ctx context.Context, attempt *provision.Attempt, err error) (reconcile.Result, error) {
	var other *shared
	if !errors.As(err, &other) {
		return reconcile.Result{}, err
	}
	c.leave(attempt, attempt.Prior)
	return c.reject(ctx, c.lookup(keyOfRef(attempt.Ref)), provision.Reject{Err: err})
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
