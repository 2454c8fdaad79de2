// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"fmt"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"

	"github.com/csi-tandem/csi-tandem/pkg/binding"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// planContent is for a content that outlived its snapshot.
func (p *Plan) planContent(ctx context.Context, c kube.Client) error {
	old, found, err := fetch[*kube.Content](ctx, c, kube.Key{Name: p.order.Content})
	switch {
	case err != nil:
		return err
	case !found:
		return p.planGone(ctx, c, fmt.Errorf("there is no VolumeSnapshotContent %s", p.order.Content))
	case old.DeletionTimestamp != nil:
		return p.planGone(ctx, c, goingError(old))
	case old.GroupHandle() != "":
		return memberError(old)
	case p.order.Driver != "" && p.order.Driver != old.Spec.Driver:
		return fmt.Errorf("VolumeSnapshotContent %s is of driver %s, and %s is asked for", old.Name, old.Spec.Driver, p.order.Driver)
	}
	if err := p.checkFree(ctx, c, old); err != nil {
		return err
	}
	if old.Spec.Source.SnapshotHandle == nil {
		return p.planTakeOver(ctx, c, old)
	}
	p.content = old.Name
	if p.isChange(old) {
		p.free = old
	}
	return nil
}

// checkFree makes sure that no other living snapshot has its data in the content. It reads live: a snapshot that
// is merely not known here would lose its data.
func (p *Plan) checkFree(ctx context.Context, c kube.Client, content *kube.Content) error {
	ref := content.Spec.VolumeSnapshotRef
	key := kube.Key{Namespace: ref.Namespace, Name: ref.Name}
	holder, found := p.there, p.there != nil
	if key != p.order.key() {
		var err error
		if holder, found, err = fetch[*snapv1.VolumeSnapshot](ctx, c, key); err != nil {
			return err
		}
	}
	switch {
	case !found:
		return nil
	case holder.UID == ref.UID && binding.IsDynamic(holder):
		return fmt.Errorf("VolumeSnapshotContent %s is that of VolumeSnapshot %s, which is there: there is nothing to import", content.Name, kube.IndexValue(key))
	case key == p.order.key():
		return nil
	case holder.UID == ref.UID || binding.Names(holder, content.Name):
		return fmt.Errorf("VolumeSnapshotContent %s is that of VolumeSnapshot %s, which is there: delete that one first, or leave it the content", content.Name, kube.IndexValue(key))
	}
	return nil
}

// isChange tells whether edit would change anything.
func (p *Plan) isChange(c *kube.Content) bool {
	return !p.isBound(c) && !p.isWaiting(c) || p.order.Policy != "" && string(c.Spec.DeletionPolicy) != p.order.Policy
}

// isBound tells that the content is bound to the very snapshot of the order.
func (p *Plan) isBound(c *kube.Content) bool {
	return p.there != nil && binding.PointsAt(&c.VolumeSnapshotContent, p.there)
}

// isWaiting tells that the content waits for a snapshot of the order's name.
func (p *Plan) isWaiting(c *kube.Content) bool {
	ref := c.Spec.VolumeSnapshotRef
	return ref.Namespace == p.order.Namespace && ref.Name == p.order.Name && ref.UID == "" && c.Annotations[wellknown.AnnBeingDeleted] == ""
}

// edit makes the content wait for the snapshot of the order. The mark of its last snapshot's deletion goes: it
// would let the content be deleted under the next one.
func (p *Plan) edit(c *kube.Content) {
	if !p.isBound(c) {
		ref := &c.Spec.VolumeSnapshotRef
		ref.Kind, ref.APIVersion = wellknown.KindVolumeSnapshot, snapv1.SchemeGroupVersion.String()
		ref.Namespace, ref.Name, ref.UID, ref.ResourceVersion = p.order.Namespace, p.order.Name, "", ""
		kube.RemoveAnnotation(c, wellknown.AnnBeingDeleted)
	}
	if p.order.Policy != "" {
		c.Spec.DeletionPolicy = snapv1.DeletionPolicy(p.order.Policy)
	}
}

// planTakeOver is for a content that was made for a snapshot of a claim. Its source is the volume, which cannot be
// changed, and no other snapshot may be bound to such a content; so another one takes its place.
func (p *Plan) planTakeOver(ctx context.Context, c kube.Client, old *kube.Content) error {
	switch {
	case handleOf(old) == "":
		return fmt.Errorf("VolumeSnapshotContent %s does not say what the driver calls its snapshot: there is nothing to import", old.Name)
	case old.Spec.DeletionPolicy != snapv1.VolumeSnapshotContentRetain:
		return fmt.Errorf("VolumeSnapshotContent %s has deletionPolicy %s, so the snapshot goes with it: set it to Retain first", old.Name, old.Spec.DeletionPolicy)
	}
	wanted := buildHeir(p.order, old)
	p.drop = old
	return p.planCreate(ctx, c, wanted, handleOf(old))
}

// planGone is for a content that is not there any more, or not for long. That is fine when an earlier order has put another
// one in its place, and else the error that is given.
func (p *Plan) planGone(ctx context.Context, c kube.Client, missing error) error {
	if p.there == nil || !binding.IsPreProvisioned(p.there) {
		return missing
	}
	heir, found, err := fetch[*kube.Content](ctx, c, kube.Key{Name: binding.ContentName(p.there)})
	switch {
	case err != nil:
		return err
	case !found || heir.Annotations[wellknown.AnnTakenFrom] != p.order.Content:
		return missing
	}
	p.content = heir.Name
	return p.acceptContent(heir)
}
