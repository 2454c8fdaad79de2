// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"slices"
	"strings"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Watch tells the queues which changes concern them; snapshots is nil where they may not be watched.
func (c *Controller) Watch(claims *kube.Informer[*corev1.PersistentVolumeClaim], snapshots *kube.Informer[*snapv1.VolumeSnapshot]) {
	claims.OnChange(func(change kube.Change[*corev1.PersistentVolumeClaim]) {
		c.snapshots.Hear(c.SnapshotsOfClaim(change))
		c.claims.Hear(c.ClaimsOfClaim(change))
	})
	if snapshots != nil {
		snapshots.OnChange(func(change kube.Change[*snapv1.VolumeSnapshot]) {
			c.snapshots.Hear(c.SnapshotsOfSnapshot(change))
		})
	}
}

// WatchGrants tells the queues of what other namespaces may have.
func (c *Controller) WatchGrants(grants *kube.Informer[*kube.ReferenceGrant]) {
	grants.OnChange(func(change kube.Change[*kube.ReferenceGrant]) {
		c.snapshots.Hear(c.SnapshotsOfGrant(change))
		c.claims.Hear(c.ClaimsOfGrant(change))
	})
}

// allSnapshots are the snapshots to begin with.
func (c *Controller) allSnapshots() (keys []reconcile.Key) {
	for _, claim := range c.Claims.All() {
		keys = append(keys, c.SnapshotsOfClaim(kube.Change[*corev1.PersistentVolumeClaim]{New: claim})...)
	}
	if c.Snapshots == nil {
		return keys
	}
	// Whether or not those of an earlier process are looked at: one whose last claim's end was heard here and not kept is among them.
	for _, snapshot := range c.Snapshots.All() {
		if kube.HasFinalizer(snapshot, wellknown.FinalizerSnapshotAsSource) {
			keys = append(keys, reconcile.Key{Namespace: snapshot.Namespace, Name: snapshot.Name})
		}
	}
	return keys
}

// allClaims are the source claims to begin with.
func (c *Controller) allClaims() (keys []reconcile.Key) {
	for _, claim := range c.Claims.All() {
		keys = append(keys, c.ClaimsOfClaim(kube.Change[*corev1.PersistentVolumeClaim]{New: claim})...)
	}
	return keys
}

// SnapshotsOfGrant are the snapshots that other namespaces may have no more, if the change is that.
func (c *Controller) SnapshotsOfGrant(change kube.Change[*kube.ReferenceGrant]) []reconcile.Key {
	return c.sourcesOfGrant(change, kube.BySnapshotSource)
}

// ClaimsOfGrant are the source claims that other namespaces may have no more, if the change is that.
func (c *Controller) ClaimsOfGrant(change kube.Change[*kube.ReferenceGrant]) []reconcile.Key {
	return c.sourcesOfGrant(change, kube.ByClaimSource)
}

// sourcesOfGrant are the sources in the namespace of a grant that is not what it was and that others want.
func (c *Controller) sourcesOfGrant(change kube.Change[*kube.ReferenceGrant], index string) []reconcile.Key {
	if change.Old == nil || change.New != nil && change.Old.ResourceVersion == change.New.ResourceVersion {
		return nil
	}
	var keys []reconcile.Key
	sources := kube.ClaimIndexes()[index]
	for _, claim := range c.Claims.ByIndex(kube.ByForeignSource, change.Old.Namespace) {
		if provision.IsWaiting(claim) {
			keys = append(keys, keysOf(sources(claim))...)
		}
	}
	return keys
}

// Freed looks at a source again because an attempt that used it has ended.
func (c *Controller) Freed(source provision.Source) {
	key := reconcile.Key{Namespace: source.Namespace, Name: source.Name}
	if source.Kind == wellknown.KindVolumeSnapshot {
		c.snapshots.Add(key)
		return
	}
	c.claims.Add(key)
}

// SnapshotsOfClaim are the snapshots that a claim needs no more. While it waits for its volume its
// changes mean nothing here.
func (c *Controller) SnapshotsOfClaim(change kube.Change[*corev1.PersistentVolumeClaim]) []reconcile.Key {
	if !change.Deleted && provision.IsWaiting(change.New) {
		return nil
	}
	return keysOf(kube.ClaimIndexes()[kube.BySnapshotSource](change.Object()))
}

// ClaimsOfClaim are the source claims that a claim needs no more, and the claim itself when it is a
// source that is being deleted.
func (c *Controller) ClaimsOfClaim(change kube.Change[*corev1.PersistentVolumeClaim]) []reconcile.Key {
	var keys []reconcile.Key
	claim := change.Object()
	if change.Deleted || !provision.IsWaiting(claim) {
		keys = keysOf(kube.ClaimIndexes()[kube.ByClaimSource](claim))
	}
	if !change.Deleted && claim.DeletionTimestamp != nil && kube.HasFinalizer(claim, wellknown.FinalizerCloneSource) {
		keys = append(keys, reconcile.Key{Namespace: claim.Namespace, Name: claim.Name})
	}
	return keys
}

// SnapshotsOfSnapshot is a snapshot that has our finalizer. At start this is every such snapshot, which
// finds what an earlier process has left, unless that is switched off.
func (c *Controller) SnapshotsOfSnapshot(change kube.Change[*snapv1.VolumeSnapshot]) []reconcile.Key {
	if change.Deleted || !kube.HasFinalizer(change.New, wellknown.FinalizerSnapshotAsSource) {
		return nil
	}
	if change.Old == nil && c.options.SweepInterval <= 0 {
		return nil
	}
	return []reconcile.Key{{Namespace: change.New.Namespace, Name: change.New.Name}}
}

func keysOf(indexed []string) []reconcile.Key {
	keys := make([]reconcile.Key, 0, len(indexed))
	for _, value := range indexed {
		namespace, name, _ := strings.Cut(value, "/")
		keys = append(keys, reconcile.Key{Namespace: namespace, Name: name})
	}
	return keys
}

func (c *Controller) gatherSnapshot(key reconcile.Key) (provision.SourceInput, *snapv1.VolumeSnapshot) {
	at := kube.Key{Namespace: key.Namespace, Name: key.Name}
	in := c.gather(wellknown.KindVolumeSnapshot, kube.BySnapshotSource, at)
	if c.Snapshots == nil {
		return in, nil
	}
	snapshot, ok := c.Snapshots.Lookup(at)
	if ok {
		in.Object, in.OwnersTurnOver = snapshot, c.isOurTurn(snapshot)
	}
	return in, snapshot
}

func (c *Controller) gatherClaim(key reconcile.Key) (provision.SourceInput, *corev1.PersistentVolumeClaim) {
	at := kube.Key{Namespace: key.Namespace, Name: key.Name}
	in := c.gather(wellknown.KindPersistentVolumeClaim, kube.ByClaimSource, at)
	claim, ok := c.Claims.Lookup(at)
	if ok {
		in.Object, in.OwnersTurnOver = claim, c.isOurTurn(claim)
	}
	return in, claim
}

func (c *Controller) gather(kind, index string, key kube.Key) provision.SourceInput {
	in := provision.SourceInput{
		Node:  c.Local.Node,
		Kind:  kind,
		Users: c.Claims.ByIndex(index, kube.IndexValue(key)),
		InUse: c.IsInUse(provision.Source{Kind: kind, Namespace: key.Namespace, Name: key.Name}),
	}
	isForeign := func(claim *corev1.PersistentVolumeClaim) bool { return claim.Namespace != key.Namespace }
	switch {
	case !slices.ContainsFunc(in.Users, isForeign):
	case c.GrantsOf == nil:
		in.Grants.Unknown = errors.ErrUnsupported
	default:
		in.Grants = c.GrantsOf(key.Namespace)
	}
	return in
}

// untilGrantsKnown is when a source that goes is looked at again while grants cannot be read: that there are none is told by no event.
const untilGrantsKnown = time.Minute

// again is when a source is looked at again without an event; 0 for never.
func (c *Controller) again(in provision.SourceInput) time.Duration {
	turn := c.untilTurn(in.Object)
	switch {
	case in.Grants.Unknown == nil || c.GrantsOf == nil || in.Object == nil || in.Object.GetDeletionTimestamp() == nil:
		return turn
	case turn == 0:
		return untilGrantsKnown
	}
	return min(turn, untilGrantsKnown)
}
