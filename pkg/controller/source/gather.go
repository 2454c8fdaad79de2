// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strings"

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
		for _, key := range c.SnapshotsOfClaim(change) {
			c.snapshots.Add(key)
		}
		for _, key := range c.ClaimsOfClaim(change) {
			c.claims.Add(key)
		}
	})
	if snapshots != nil {
		snapshots.OnChange(func(change kube.Change[*snapv1.VolumeSnapshot]) {
			for _, key := range c.SnapshotsOfSnapshot(change) {
				c.snapshots.Add(key)
			}
		})
	}
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
		in.Object = snapshot
	}
	return in, snapshot
}

func (c *Controller) gatherClaim(key reconcile.Key) (provision.SourceInput, *corev1.PersistentVolumeClaim) {
	at := kube.Key{Namespace: key.Namespace, Name: key.Name}
	in := c.gather(wellknown.KindPersistentVolumeClaim, kube.ByClaimSource, at)
	claim, ok := c.Claims.Lookup(at)
	if ok {
		in.Object = claim
	}
	return in, claim
}

func (c *Controller) gather(kind, index string, key kube.Key) provision.SourceInput {
	return provision.SourceInput{
		Kind:  kind,
		Users: c.Claims.ByIndex(index, kube.IndexValue(key)),
		InUse: c.IsInUse(provision.Source{Kind: kind, Namespace: key.Namespace, Name: key.Name}),
	}
}
