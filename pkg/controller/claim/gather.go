// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"errors"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Watched are the informers that wake the room. Snapshots is nil where they may not be watched; then a
// restore that waits for its snapshot is tried again by time only.
type Watched struct {
	Claims *kube.Informer[*corev1.PersistentVolumeClaim]
	// Volumes may be nil.
	Volumes   *kube.Informer[*corev1.PersistentVolume]
	Classes   *kube.Informer[*storagev1.StorageClass]
	Snapshots *kube.Informer[*snapv1.VolumeSnapshot]
	// Grants is nil when sources in other namespaces are not allowed at all.
	Grants *kube.Informer[*kube.ReferenceGrant]
}

// Watch tells the queue which changes concern it.
func (c *Controller) Watch(w Watched) {
	w.Claims.OnChange(func(change kube.Change[*corev1.PersistentVolumeClaim]) { c.queue.Hear(c.KeysOfClaim(change)) })
	w.Classes.OnChange(func(change kube.Change[*storagev1.StorageClass]) { c.queue.Hear(c.KeysOfClass(change)) })
	if w.Volumes != nil {
		w.Volumes.OnChange(func(change kube.Change[*corev1.PersistentVolume]) { c.queue.Hear(c.KeysOfVolume(change)) })
	}
	if w.Snapshots != nil {
		w.Snapshots.OnChange(func(change kube.Change[*snapv1.VolumeSnapshot]) { c.queue.Hear(c.KeysOfSnapshot(change)) })
	}
	if w.Grants != nil {
		w.Grants.OnChange(func(change kube.Change[*kube.ReferenceGrant]) { c.queue.Hear(c.KeysOfGrant(change)) })
	}
}

// all are the claims to begin with.
func (c *Controller) all() (keys []reconcile.Key) {
	for _, claim := range c.Claims.All() {
		keys = append(keys, c.KeysOfClaim(kube.Change[*corev1.PersistentVolumeClaim]{New: claim})...)
	}
	return keys
}

// KeysOfClaim are the claims to look at after a change of one. Claims of others and claims that have
// their volume never enter the queue: they are most of the cluster.
func (c *Controller) KeysOfClaim(change kube.Change[*corev1.PersistentVolumeClaim]) []reconcile.Key {
	var keys []reconcile.Key
	if change.Old != nil && (change.New == nil || change.New.UID != change.Old.UID) && c.remembers(change.Old.UID) {
		keys = append(keys, keyOf(change.Old))
	}
	if claim := change.New; claim != nil {
		if c.remembers(claim.UID) || claim.Spec.VolumeName == "" && c.config.IsClaimOurs(claim) {
			keys = append(keys, keyOf(claim))
		}
		if claim.Status.Phase == corev1.ClaimBound && (change.Old == nil || change.Old.Status.Phase != corev1.ClaimBound) {
			keys = append(keys, c.waiting(kube.ByClaimSource, kube.IndexValue(kube.KeyOf(claim)))...)
		}
	}
	return keys
}

// KeysOfVolume is the claim whose PersistentVolume went before it was bound: it waits for another one.
func (c *Controller) KeysOfVolume(change kube.Change[*corev1.PersistentVolume]) []reconcile.Key {
	if !change.Deleted || change.Old.Spec.ClaimRef == nil {
		return nil
	}
	ref := change.Old.Spec.ClaimRef
	claim, ok := c.Claims.Lookup(kube.Key{Namespace: ref.Namespace, Name: ref.Name})
	if !ok || claim.UID != ref.UID || claim.Spec.VolumeName != "" || !c.config.IsClaimOurs(claim) {
		return nil
	}
	return []reconcile.Key{keyOf(claim)}
}

// KeysOfSnapshot are the claims that wait for a snapshot which has become ready.
func (c *Controller) KeysOfSnapshot(change kube.Change[*snapv1.VolumeSnapshot]) []reconcile.Key {
	// Where only those are kept that are not ready, one that has become so is told as gone.
	now := change.Object()
	if !isReady(now) || !change.Deleted && change.Old != nil && isReady(change.Old) {
		return nil
	}
	return c.waiting(kube.BySnapshotSource, kube.IndexValue(kube.KeyOf(now)))
}

func isReady(s *snapv1.VolumeSnapshot) bool {
	return s.Status != nil && s.Status.ReadyToUse != nil && *s.Status.ReadyToUse
}

// KeysOfClass are the claims that wait for a class which has come or was replaced.
func (c *Controller) KeysOfClass(change kube.Change[*storagev1.StorageClass]) []reconcile.Key {
	if change.New == nil || change.Old != nil && change.Old.ResourceVersion == change.New.ResourceVersion {
		return nil
	}
	return c.waiting(kube.ByStorageClass, change.New.Name)
}

// waiting are the claims of ours without a volume that an index finds.
func (c *Controller) waiting(index, value string) []reconcile.Key {
	var keys []reconcile.Key
	for _, claim := range c.Claims.ByIndex(index, value) {
		if claim.Spec.VolumeName == "" && c.config.IsClaimOurs(claim) {
			keys = append(keys, keyOf(claim))
		}
	}
	return keys
}

func (c *Controller) remembers(uid types.UID) bool {
	attempt, refusal := c.memory.of(uid)
	return attempt != nil || refusal != nil || c.memory.isRacing(uid) || c.memory.isFound(uid)
}

func keyOf(claim *corev1.PersistentVolumeClaim) reconcile.Key {
	return reconcile.Key{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
}

func keyOfRef(ref *corev1.ObjectReference) reconcile.Key {
	return reconcile.Key{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID}
}

// lookup gives the claim of a key, nil when it is gone or replaced by a namesake.
func (c *Controller) lookup(key reconcile.Key) *corev1.PersistentVolumeClaim {
	claim, ok := c.Claims.Lookup(kube.Key{Namespace: key.Namespace, Name: key.Name})
	if !ok || claim.UID != key.UID {
		return nil
	}
	return claim
}

func (c *Controller) gather(key reconcile.Key) provision.ClaimInput {
	in := provision.ClaimInput{Config: c.config, Topology: c.Topology, Now: c.Clock.Now(), Claim: c.lookup(key)}
	in.Attempt, in.Refusal = c.memory.of(key.UID)
	names := provision.VolumeNames(c.config.Options, refOf(key))
	if in.Attempt != nil {
		names = append(names, in.Attempt.Name())
	}
	for _, name := range names {
		if volume, ok := c.Volumes.Lookup(kube.Key{Name: name}); ok {
			in.Volume = volume
			break
		}
	}
	if in.Claim != nil {
		in.Grants = c.grantsFor(in.Claim)
		in.Class, _ = c.Classes.Lookup(kube.Key{Name: provision.ClassName(in.Claim)})
		if provision.IsRaced(in) {
			in.Race = c.memory.enter(key, in.Now)
		}
	}
	return in
}

// fetchSource reads the source of a claim. Snapshots, contents and volumes are read live: a volume made
// from an outdated idea of its source holds somebody else's data, and the provisioner has no cache of
// snapshots that it would need for nothing else.
func (c *Controller) fetchSource(ctx context.Context, source provision.Source) *provision.SourceState {
	state := &provision.SourceState{}
	key := kube.Key{Namespace: source.Namespace, Name: source.Name}
	if source.Kind == wellknown.KindPersistentVolumeClaim {
		c.fetchCloneSource(ctx, state, key)
		return state
	}
	snapshot, err := kube.Fetch[*snapv1.VolumeSnapshot](ctx, c.Client, key)
	if err != nil {
		state.SnapshotErr = err
		return state
	}
	state.Snapshot = snapshot
	if snapshot.Status == nil || snapshot.Status.BoundVolumeSnapshotContentName == nil {
		return state
	}
	content, err := kube.Fetch[*kube.Content](ctx, c.Client, kube.Key{Name: *snapshot.Status.BoundVolumeSnapshotContentName})
	if err != nil {
		state.ContentErr = err
		return state
	}
	state.Content = &content.VolumeSnapshotContent
	state.Volume = c.snapshotted(content)
	return state
}

func (c *Controller) fetchCloneSource(ctx context.Context, state *provision.SourceState, key kube.Key) {
	claim, ok := c.Claims.Lookup(key)
	if !ok {
		if state.ClaimErr = errors.New("not found"); c.config.Node == "" {
			return
		}
		// Claims of other nodes are in no cache here.
		if claim, state.ClaimErr = kube.Fetch[*corev1.PersistentVolumeClaim](ctx, c.Client, key); state.ClaimErr != nil {
			return
		}
	}
	state.Claim = claim
	if claim.Spec.VolumeName == "" {
		return
	}
	volume, err := kube.Fetch[*corev1.PersistentVolume](ctx, c.Client, kube.Key{Name: claim.Spec.VolumeName})
	if err != nil {
		state.VolumeErr = err
		return
	}
	state.Volume = volume
}

// fetchAttributes reads a VolumeAttributesClass live: few claims name one, so it is in no cache.
func (c *Controller) fetchAttributes(ctx context.Context, name string) *provision.AttributesState {
	class, err := kube.Fetch[*storagev1.VolumeAttributesClass](ctx, c.Client, kube.Key{Name: name})
	return &provision.AttributesState{Class: class, Err: err}
}
