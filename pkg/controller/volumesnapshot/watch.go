// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"strings"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/binding"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Informers are the watches that wake the room.
type Informers struct {
	Snapshots *kube.Informer[*snapv1.VolumeSnapshot]
	Contents  *kube.Informer[*kube.Content]
	Classes   *kube.Informer[*snapv1.VolumeSnapshotClass]
	Claims    *kube.Informer[*corev1.PersistentVolumeClaim]
}

// Watch puts the keys of what changes into the queue.
func (c *Controller) Watch(i Informers) {
	i.Snapshots.OnChange(func(change kube.Change[*snapv1.VolumeSnapshot]) { c.queue.Hear(c.OnSnapshot(change)) })
	i.Contents.OnChange(func(change kube.Change[*kube.Content]) { c.queue.Hear(c.OnContent(change)) })
	i.Classes.OnChange(func(change kube.Change[*snapv1.VolumeSnapshotClass]) { c.queue.Hear(c.OnClass(change)) })
	i.Claims.OnChange(func(change kube.Change[*corev1.PersistentVolumeClaim]) { c.queue.Hear(c.OnClaim(change)) })
}

// OnSnapshot gives the keys that a change of a snapshot asks to look at. Our own writes do not count; what
// is being deleted always does.
func (c *Controller) OnSnapshot(change kube.Change[*snapv1.VolumeSnapshot]) []reconcile.Key {
	s := change.Object()
	if !change.Deleted && change.Old != nil && change.Old.UID != s.UID {
		c.forgetAll(change.Old.UID)
	}
	switch {
	case change.Deleted:
		c.forgetAll(s.UID)
		keys := c.sourceOf(s)
		if c.tear(s) || c.hasLeft(s) {
			keys = append(keys, keyOf(s))
		}
		return keys
	case change.Old == nil,
		s.DeletionTimestamp != nil,
		change.Old.ResourceVersion == s.ResourceVersion,
		change.Old.UID != s.UID,
		!equality.Semantic.DeepEqual(change.Old.Spec, s.Spec),
		hasLost(change.Old, s):
		return []reconcile.Key{keyOf(s)}
	default:
		return nil
	}
}

// forgetAll drops all that is known of a snapshot.
func (c *Controller) forgetAll(uid types.UID) {
	c.forget(uid)
	c.meters.gone(uid)
	c.neglected.forget(uid)
}

// tidy gives what follows a look: a snapshot that went meanwhile is forgotten once more, since the watch has told of its end
// by then, and what was noted after that would stay for ever.
func (c *Controller) tidy(key kube.Key) func() {
	before, found := c.Snapshots.Lookup(key)
	return func() {
		if !found {
			return
		}
		if shown, ok := c.Snapshots.Lookup(key); !ok || shown.UID != before.UID {
			c.forgetAll(before.UID)
		}
	}
}

// sourceOf asks about the claim of a snapshot that has vanished, in case it went without letting the claim
// go.
func (c *Controller) sourceOf(s *snapv1.VolumeSnapshot) []reconcile.Key {
	if !binding.IsDynamic(s) {
		return nil
	}
	key := kube.Key{Namespace: s.Namespace, Name: *s.Spec.Source.PersistentVolumeClaimName}
	if claim, ok := c.Claims.Lookup(key); !ok || !kube.HasFinalizer(claim, wellknown.FinalizerSourceClaim) {
		return nil
	}
	return []reconcile.Key{claimKey(key)}
}

// hasLost tells that somebody took away what we had written: we only ever add to a living snapshot, or
// change its readiness and error as the content says.
func hasLost(before, after *snapv1.VolumeSnapshot) bool {
	for _, f := range []string{wellknown.FinalizerSnapshotSource, wellknown.FinalizerSnapshotBound} {
		if kube.HasFinalizer(before, f) && !kube.HasFinalizer(after, f) {
			return true
		}
	}
	return before.Status != nil && (after.Status == nil || hasLostStatus(before.Status, after.Status))
}

func hasLostStatus(before, after *snapv1.VolumeSnapshotStatus) bool {
	bound, ready := before.BoundVolumeSnapshotContentName, before.ReadyToUse
	return bound != nil && (after.BoundVolumeSnapshotContentName == nil || *after.BoundVolumeSnapshotContentName != *bound) ||
		ready != nil && *ready && (after.ReadyToUse == nil || !*after.ReadyToUse) ||
		before.CreationTime != nil && after.CreationTime == nil ||
		before.RestoreSize != nil && after.RestoreSize == nil
}

// OnContent gives the snapshots that a change of a content is news for: the one that it points at, and
// those that name it.
func (c *Controller) OnContent(change kube.Change[*kube.Content]) []reconcile.Key {
	content := change.Object()
	if change.Deleted {
		c.noteGone(content)
	} else if change.Old != nil && change.Old.ResourceVersion != content.ResourceVersion && isNoNews(change.Old, content) {
		return nil
	}
	keys := []reconcile.Key{refKey(content)}
	for _, s := range c.Snapshots.ByIndex(kube.ByContent, content.Name) {
		if key := keyOf(s); key != keys[0] {
			keys = append(keys, key)
		}
	}
	return keys
}

// isNoNews tells the changes of a content that no snapshot depends on.
func isNoNews(before, after *kube.Content) bool {
	return before.UID == after.UID && after.DeletionTimestamp == nil &&
		equality.Semantic.DeepEqual(before.Spec, after.Spec) && equality.Semantic.DeepEqual(before.Status, after.Status) &&
		kube.HasFinalizer(before, wellknown.FinalizerContent) == kube.HasFinalizer(after, wellknown.FinalizerContent)
}

// noteGone remembers the end of a content while its snapshot is there: seeing it saves the live read, and
// the driver's name may be known from nothing else any more.
func (c *Controller) noteGone(content *kube.Content) {
	ref := content.Spec.VolumeSnapshotRef
	s, ok := c.Snapshots.Lookup(kube.Key{Namespace: ref.Namespace, Name: ref.Name})
	if ok && binding.PointsAt(&content.VolumeSnapshotContent, s) && binding.ContentName(s) == content.Name {
		c.remember(s.UID, goneContent{content.Spec.Driver, s.DeletionTimestamp != nil})
	}
}

// OnClass gives the snapshots that may wait for a class.
func (c *Controller) OnClass(change kube.Change[*snapv1.VolumeSnapshotClass]) []reconcile.Key {
	class := change.Object()
	if change.Old != nil && change.New != nil && equality.Semantic.DeepEqual(change.Old.Parameters, class.Parameters) &&
		change.Old.Driver == class.Driver && change.Old.DeletionPolicy == class.DeletionPolicy &&
		change.Old.Annotations[wellknown.AnnIsDefaultSnapshotClass] == class.Annotations[wellknown.AnnIsDefaultSnapshotClass] {
		return nil
	}
	c.noteClass(class.Name, change.Deleted)
	var keys []reconcile.Key
	// Those without class wait for a default one, or for one default too many to go.
	for _, name := range []string{class.Name, ""} {
		for _, s := range c.Snapshots.ByIndex(kube.BySnapshotClass, name) {
			if binding.BoundName(s) == "" {
				keys = append(keys, keyOf(s))
			}
		}
	}
	return keys
}

// noteClass remembers since when a class says what it says.
func (c *Controller) noteClass(name string, deleted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if deleted {
		delete(c.classSince, name)
		return
	}
	c.classSince[name] = c.Clock.Now()
}

// OnClaim gives the snapshots that may wait for a claim: to be bound, or to have been restored.
func (c *Controller) OnClaim(change kube.Change[*corev1.PersistentVolumeClaim]) []reconcile.Key {
	claim := change.Object()
	var keys []reconcile.Key
	if change.Deleted || change.Old == nil || isSourceNews(change.Old, claim) {
		keys = c.takenFrom(claim)
		// A claim that is protected for snapshots that were torn out would never go.
		if len(keys) == 0 && !change.Deleted && kube.HasFinalizer(claim, wellknown.FinalizerSourceClaim) {
			keys = append(keys, claimKey(kube.KeyOf(claim)))
		}
	}
	if change.Deleted || change.Old != nil && snapshot.IsRestoring(change.Old) && !snapshot.IsRestoring(claim) {
		keys = append(keys, c.restored(claim)...)
	}
	return keys
}

// takenFrom gives the snapshots that need the claim.
func (c *Controller) takenFrom(claim *corev1.PersistentVolumeClaim) []reconcile.Key {
	var keys []reconcile.Key
	for _, s := range c.Snapshots.ByIndex(kube.ByClaim, kube.IndexValue(kube.KeyOf(claim))) {
		if snapshot.UsesSource(s) {
			keys = append(keys, keyOf(s))
		}
	}
	return keys
}

// isSourceNews tells what a snapshot may have waited for. That a PersistentVolume has come later than its claim is among it,
// without a watch of volumes: Kubernetes says Pending or Lost of the claim until it is there.
func isSourceNews(before, after *corev1.PersistentVolumeClaim) bool {
	return before.Status.Phase != after.Status.Phase || before.Spec.VolumeName != after.Spec.VolumeName ||
		kube.HasFinalizer(before, wellknown.FinalizerSourceClaim) && !kube.HasFinalizer(after, wellknown.FinalizerSourceClaim) ||
		(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil)
}

// restored gives the snapshots whose deletion may have waited for a claim to be filled.
func (c *Controller) restored(claim *corev1.PersistentVolumeClaim) []reconcile.Key {
	var keys []reconcile.Key
	for _, name := range snapshot.RestoresFrom(claim) {
		namespace, short, _ := strings.Cut(name, "/")
		if s, ok := c.Snapshots.Lookup(kube.Key{Namespace: namespace, Name: short}); ok && s.DeletionTimestamp != nil {
			keys = append(keys, keyOf(s))
		}
	}
	return keys
}
