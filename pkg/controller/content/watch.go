// SPDX-License-Identifier: Apache-2.0

package content

import (
	"maps"
	"slices"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/csi-tandem/csi-tandem/pkg/binding"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Watch puts the keys of what changes into the queue. snapshots is nil where they may not be watched.
func (c *Controller) Watch(contents *kube.Informer[*kube.Content], classes *kube.Informer[*snapv1.VolumeSnapshotClass],
	snapshots *kube.Informer[*snapv1.VolumeSnapshot]) {
	contents.OnChange(func(change kube.Change[*kube.Content]) { c.queue.Hear(c.OnContent(change)) })
	classes.OnChange(func(change kube.Change[*snapv1.VolumeSnapshotClass]) { c.queue.Hear(c.OnClass(change)) })
	if snapshots != nil {
		snapshots.OnChange(func(change kube.Change[*snapv1.VolumeSnapshot]) { c.queue.Hear(c.OnSnapshot(change)) })
	}
}

// OnContent gives the keys that a change of a content asks to look at. Our own writes do not count, or each
// would cut short the wait for the next try; what is being deleted always counts.
func (c *Controller) OnContent(change kube.Change[*kube.Content]) []reconcile.Key {
	key := []reconcile.Key{{Name: change.Object().Name}}
	if isHastened(change) {
		c.hasten(change.New.UID)
	}
	if !change.Deleted && change.Old != nil && change.Old.UID != change.New.UID {
		c.forget(change.Old.UID)
	}
	switch {
	case change.Deleted:
		c.forget(change.Old.UID)
		return nil
	case change.New.Spec.Driver != c.DriverName:
		return nil
	case change.Old == nil,
		change.New.DeletionTimestamp != nil,
		change.Old.ResourceVersion == change.New.ResourceVersion,
		change.Old.UID != change.New.UID,
		!equality.Semantic.DeepEqual(change.Old.Spec, change.New.Spec),
		change.Old.GroupHandle() != change.New.GroupHandle(),
		!maps.Equal(othersAnnotations(change.Old), othersAnnotations(change.New)),
		c.isOpen(change.New.UID) && isMarked(change.Old) && !isMarked(change.New),
		hasSpoilt(change.Old, change.New),
		isRemedied(change.Old, change.New) && !c.isOpen(change.New.UID):
		return key
	default:
		return nil
	}
}

// hasSpoilt tells that a status says less than before: we never take back what we wrote, but somebody else may, and so may the last write of a
// process that led before this one.
func hasSpoilt(before, after *kube.Content) bool {
	return isReady(before) && (!isReady(after) || after.Status.Error != nil) || hasHandle(before) && !hasHandle(after)
}

// isHastened tells that somebody does not want to wait for the next try.
func isHastened(change kube.Change[*kube.Content]) bool {
	return !change.Deleted && change.Old != nil && change.Old.Annotations[wellknown.AnnRetry] != change.New.Annotations[wellknown.AnnRetry]
}

// othersAnnotations are those that we do not write.
func othersAnnotations(content *kube.Content) map[string]string {
	others := maps.Clone(content.Annotations)
	delete(others, wellknown.AnnBeingCreated)
	delete(others, wellknown.AnnSnapshotParameters)
	delete(others, wellknown.AnnSnapshotName)
	return others
}

// isRemedied tells that a content which fails got the mark, or other parameters: the messages advise users to write there what else we alone do.
// Our own write to one that failed before costs a look, which finds that it has to wait.
func isRemedied(before, after *kube.Content) bool {
	failing := after.Status != nil && after.Status.Error != nil && !hasHandle(after)
	return failing && (!isMarked(before) && isMarked(after) ||
		before.Annotations[wellknown.AnnSnapshotParameters] != after.Annotations[wellknown.AnnSnapshotParameters])
}

func isMarked(content *kube.Content) bool {
	_, marked := content.Annotations[wellknown.AnnBeingCreated]
	return marked
}

// OnClass gives the contents that may wait for a class, or for one of another driver to go.
func (c *Controller) OnClass(change kube.Change[*snapv1.VolumeSnapshotClass]) []reconcile.Key {
	class := change.Object()
	if !change.Deleted && change.Old != nil && change.Old.UID == class.UID &&
		equality.Semantic.DeepEqual(change.Old.Parameters, class.Parameters) && change.Old.Driver == class.Driver {
		return nil
	}
	var keys []reconcile.Key
	for _, content := range c.Contents.ByIndex(kube.BySnapshotClass, class.Name) {
		if content.Spec.Driver == c.DriverName && (!isReady(content) || content.DeletionTimestamp != nil) {
			keys = append(keys, reconcile.Key{Name: content.Name})
			if !change.Deleted {
				c.hasten(content.UID) // what the driver has refused may be corrected
			}
		}
	}
	return keys
}

// OnSnapshot gives the contents that a snapshot's deletion permits to go.
func (c *Controller) OnSnapshot(change kube.Change[*snapv1.VolumeSnapshot]) []reconcile.Key {
	s := change.Object()
	leaves := isLeaving(change)
	if !change.Deleted && !leaves && !begins(change.Old, s) {
		return nil
	}
	contents := c.of(s)
	if leaves {
		contents = append(contents, c.of(change.Old)...)
	}
	var keys []reconcile.Key
	for _, content := range contents {
		key := reconcile.Key{Name: content.Name}
		if content.Spec.Driver == c.DriverName && content.DeletionTimestamp != nil && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// isLeaving tells the changes after which what a snapshot counted on before has lost it: it names another content by now, or has ended unseen,
// and a list has found another one under its name.
func isLeaving(change kube.Change[*snapv1.VolumeSnapshot]) bool {
	return !change.Deleted && change.Old != nil && (change.Old.UID != change.New.UID || binding.BoundName(change.Old) != binding.BoundName(change.New))
}

// begins tells the changes after which a snapshot's content may go.
func begins(before, after *snapv1.VolumeSnapshot) bool {
	return after.DeletionTimestamp != nil &&
		(before == nil || before.DeletionTimestamp == nil || snapshot.IsRead(before) && !snapshot.IsRead(after))
}

// of lists the contents that a snapshot may belong to.
func (c *Controller) of(s *snapv1.VolumeSnapshot) []*kube.Content {
	found := c.Contents.ByIndex(kube.BySnapshot, kube.IndexValue(kube.KeyOf(s)))
	for _, name := range []string{binding.BoundName(s), binding.ContentName(s)} {
		// One whose reference was edited waits as well, as long as the snapshot counts on it.
		if content, ok := c.Contents.Lookup(kube.Key{Name: name}); ok {
			found = append(found, content)
		}
	}
	return found
}
