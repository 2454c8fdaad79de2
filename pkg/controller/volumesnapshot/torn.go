// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"context"
	"fmt"
	"slices"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/binding"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// The API server looks for finalizers when a deletion begins, and does not look again when it is carried out: a snapshot to
// which we add ours in between goes all the same, although our write was acknowledged. Its content may be made by then, or
// be made in the next instant, and nobody would ever delete it. That a snapshot was there and went without having been
// Terminating is seen in the event of its end. Who has not seen that, as after a change of leader, goes by what the content
// says of its making; see clear. A content without snapshot alone permits nothing, as it may have been copied.

// tear notes a snapshot that went without having been Terminating. One that went before the work began is not noted: who stands
// by for days misses the orderly end of some, of which a new list of the watch tells in the last state that was known.
func (c *Controller) tear(s *snapv1.VolumeSnapshot) bool {
	if _, takesPart := c.Stance.Scope(); !takesPart || !binding.IsDynamic(s) || s.DeletionTimestamp != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.working {
		return false
	}
	key := kube.KeyOf(s)
	c.torn[key] = append(c.torn[key], s.UID)
	return true
}

// isTorn tells that a snapshot that this round knows from the server's own answer has gone since.
func (c *Controller) isTorn(s *snapv1.VolumeSnapshot) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.torn[kube.KeyOf(s)], s.UID)
}

func (c *Controller) tornOf(key kube.Key) []types.UID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.torn[key])
}

func (c *Controller) mend(key kube.Key, uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.torn[key] = slices.DeleteFunc(c.torn[key], func(other types.UID) bool { return other == uid })
	if len(c.torn[key]) == 0 {
		delete(c.torn, key)
	}
}

// clean takes apart what snapshots of this name have left, and finds out whose a claim is.
func (r *round) clean(ctx context.Context) error {
	if r.key == (kube.Key{}) {
		return r.fetchWhose(ctx)
	}
	if err := r.sweep(ctx); err != nil {
		return err
	}
	return r.clear(ctx)
}

// sweep deletes what was made for snapshots of this name that went in the middle of the work. It has the key of the work, so
// that the two never run at the same time.
func (r *round) sweep(ctx context.Context) error {
	for _, uid := range r.tornOf(r.key) {
		if err := r.sweepOne(ctx, uid); err != nil {
			return fmt.Errorf("deleting the content of a snapshot that has gone: %w", err)
		}
		r.mend(r.key, uid)
	}
	return nil
}

// sweepOne deletes the content before it marks it, as clear does and for the same reason.
func (r *round) sweepOne(ctx context.Context, uid types.UID) error {
	for range maxSteps {
		// Live, since a create whose answer was lost may not be in the cache yet.
		content, err := kube.Fetch[*kube.Content](ctx, r.Client, kube.Key{Name: wellknown.ContentName(string(uid))})
		switch {
		case kube.IsGone(err):
			return nil
		case err != nil:
			return err
		case r.scope == snapshot.Own && content.Spec.Driver != r.DriverName, !snapshot.IsLeftBehind(&content.VolumeSnapshotContent, r.key.Namespace, r.key.Name, uid):
			return nil
		}
		going := content.DeletionTimestamp != nil
		switch {
		case !going:
			err = kube.Delete(ctx, r.Client, content)
		case snapshot.NeedsMark(&content.VolumeSnapshotContent, r.snapshotOptions()):
			_, err = kube.Patch(ctx, r.Client, content, func(c *kube.Content) { kube.SetAnnotation(c, wellknown.AnnBeingDeleted, wellknown.AnnMarkYes) })
		}
		switch {
		case err != nil && !kube.IsGone(err):
			return err
		case going:
			return nil
		}
		klog.FromContext(ctx).V(2).Info("content deleted, its snapshot went while it was made", "content", content.Name)
		if !snapshot.NeedsMark(&content.VolumeSnapshotContent, r.snapshotOptions()) {
			return nil // our other half sees that it is being deleted
		}
	}
	return nil
}
