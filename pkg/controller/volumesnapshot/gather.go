// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"context"
	"slices"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/binding"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// round is one look at one snapshot, and what was read live in it.
type round struct {
	*Controller
	scope snapshot.Scope
	// key is the snapshot, or empty when only claim is looked at.
	key, claim kube.Key

	snapshotLive bool
	// contentLive says that the content was read live; absent that it does not exist.
	contentLive, absent bool
	volume              *corev1.PersistentVolume
	volumeRead          bool
	// vanished and sourceGone overrule caches that have not seen yet that an object is gone.
	vanished, sourceGone bool

	// What this round has read or written, which goes before the caches.
	ownSnapshot *snapv1.VolumeSnapshot
	ownContent  *kube.Content
	ownSource   *corev1.PersistentVolumeClaim

	// What the last decision was about, with the types that are written.
	snapshot *snapv1.VolumeSnapshot
	content  *kube.Content
	source   *corev1.PersistentVolumeClaim
}

// gather collects the input from the caches and from the round's own reads. False means that there is
// nothing to look at.
func (r *round) gather() (snapshot.SnapshotInput, bool) {
	in := snapshot.SnapshotInput{
		SnapshotLive: r.snapshotLive, Volume: r.volume, VolumeRead: r.volumeRead, Now: r.Clock.Now(),
		Options: r.snapshotOptions(),
	}
	if r.key == (kube.Key{}) {
		r.gatherClaim(&in, r.claim, "")
		return in, r.mayReleaseFor(in.Claim)
	}
	s, ok := own(r.ownSnapshot, r.Snapshots, r.key)
	if !ok || r.vanished || r.isTorn(s) || r.ownSnapshot == nil && r.Snapshots.HasGone(s) {
		return in, false
	}
	r.snapshot, in.Snapshot = s, s
	r.gatherContent(&in, s)
	if name := s.Spec.VolumeSnapshotClassName; name != nil {
		in.Class, in.ClassSince = r.classOf(*name)
	} else {
		in.Classes = r.Classes.All()
	}
	if name := s.Spec.Source.PersistentVolumeClaimName; name != nil {
		r.gatherClaim(&in, kube.Key{Namespace: s.Namespace, Name: *name}, s.UID)
	}
	if s.DeletionTimestamp != nil {
		in.Restoring = r.restoring(s)
	}
	if r.NodeOf != nil && r.volume != nil {
		in.Node, in.NodeErr = r.NodeOf(r.volume)
	}
	return in, true
}

func (r *round) classOf(name string) (*snapv1.VolumeSnapshotClass, time.Time) {
	class, _ := r.Classes.Lookup(kube.Key{Name: name})
	r.mu.Lock()
	defer r.mu.Unlock()
	return class, r.classSince[name]
}

func (r *round) snapshotOptions() snapshot.SnapshotOptions {
	return snapshot.SnapshotOptions{
		Driver: r.DriverName, Scope: r.scope, PreventVolumeModeConversion: r.options.PreventVolumeModeConversion,
		Distributed: r.options.Distributed, Node: r.Node, NamePrefix: r.NamePrefix, NameLength: r.NameLength,
	}
}

// own prefers what the round has from the server itself. A cache that lags may not take it in.
func own[T interface {
	comparable
	kube.Object
}](mine T, store *kube.Store[T], key kube.Key) (T, bool) {
	var none T
	if mine != none {
		return mine, true
	}
	return store.Lookup(key)
}

func (r *round) gatherContent(in *snapshot.SnapshotInput, s *snapv1.VolumeSnapshot) {
	r.content = nil
	in.ContentLive = r.contentLive
	if name := binding.ContentName(s); name != "" && !r.absent {
		r.content, _ = own(r.ownContent, r.Contents, kube.Key{Name: name})
	}
	if r.content != nil {
		in.Content = &r.content.VolumeSnapshotContent
		if name := in.Content.Spec.VolumeSnapshotClassName; name != nil && binding.IsPreProvisioned(s) {
			in.ContentClass, _ = r.Classes.Lookup(kube.Key{Name: *name})
		}
		in.UnservedTold = r.neglected.isKnown(s.UID, r.content.DeletionTimestamp != nil)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if seen, ok := r.gone[s.UID]; ok {
		in.GoneDriver, in.ContentLive = seen.driver, in.ContentLive || seen.forGood
	}
}

func (r *round) gatherClaim(in *snapshot.SnapshotInput, key kube.Key, except types.UID) {
	claim, ok := own(r.ownSource, r.Claims, key)
	if !ok || r.sourceGone {
		r.source = nil
		return
	}
	r.source, in.Claim = claim, claim
	if !kube.HasFinalizer(claim, wellknown.FinalizerSourceClaim) {
		return // nobody asks then, and thousands of snapshots of one claim must not each look at all others
	}
	for _, other := range r.Snapshots.ByIndex(kube.ByClaim, kube.IndexValue(key)) {
		if other.UID != except && snapshot.UsesSource(other) {
			in.ClaimInUse = true
			return
		}
	}
}

// mayReleaseFor tells whether a claim without snapshots is ours to release: with one binder for each driver,
// only if somebody who knows its volume could tell; with one for all, always.
func (r *round) mayReleaseFor(claim *corev1.PersistentVolumeClaim) bool {
	switch {
	case claim == nil:
		return false
	case r.scope == snapshot.All:
		return true
	case provisionerOf(claim) != "":
		return provisionerOf(claim) == r.DriverName
	case claim.Spec.VolumeName == "":
		return claim.DeletionTimestamp != nil // and will never have one
	default:
		// Without a volume of a CSI driver nobody is its binder, and each comes to the same end.
		return r.volumeRead && (r.volume == nil || r.volume.Spec.CSI == nil || r.volume.Spec.CSI.Driver == r.DriverName)
	}
}

// provisionerOf is the driver that a claim names, empty where its volume was not made for it.
func provisionerOf(claim *corev1.PersistentVolumeClaim) string {
	if name := claim.Annotations[wellknown.AnnStorageProvisioner]; name != "" {
		return name
	}
	return claim.Annotations[wellknown.AnnBetaStorageProvisioner]
}

// fetchWhose reads the volume of a claim that could be released, and does not say whose it is.
func (r *round) fetchWhose(ctx context.Context) error {
	var in snapshot.SnapshotInput
	if r.gatherClaim(&in, r.claim, ""); r.scope == snapshot.All || in.Claim == nil || in.ClaimInUse ||
		!kube.HasFinalizer(in.Claim, wellknown.FinalizerSourceClaim) || provisionerOf(in.Claim) != "" || in.Claim.Spec.VolumeName == "" {
		return nil
	}
	return r.fetchVolume(ctx, in.Claim.Spec.VolumeName)
}

// restoring lists the pending claims that are to be filled from the snapshot.
func (r *round) restoring(s *snapv1.VolumeSnapshot) []string {
	name := kube.IndexValue(kube.KeyOf(s))
	var claims []string
	for _, claim := range r.Claims.ByIndex(kube.BySnapshotSource, name) {
		if snapshot.Delays(claim, s) && slices.Contains(snapshot.RestoresFrom(claim), name) {
			claims = append(claims, kube.IndexValue(kube.KeyOf(claim)))
		}
	}
	slices.Sort(claims)
	return claims
}

// goneContent is a content that was seen to be deleted. It is so for good when its snapshot was being deleted by then: that of a living one
// may be made anew, and the cache may not know it yet.
type goneContent struct {
	driver  string
	forGood bool
}

// remember notes that the content of an object that is there was seen to be deleted.
func (c *Controller) remember(snapshotUID types.UID, content goneContent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone[snapshotUID] = content
}

func (c *Controller) forget(snapshotUID types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.gone, snapshotUID)
}

// isGoing tells an object that went with the write that returned it. It must not be put into a cache, which
// may have been told of its end already.
func isGoing(obj kube.Object) bool {
	return obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0
}
