// SPDX-License-Identifier: Apache-2.0

package content

import (
	"context"
	"fmt"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/binding"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// isCountedOn looks for a living snapshot that counts on a content which does not point at it any more: an
// edited reference must not cost that snapshot its data. The cache says whom to ask.
func (r *round) isCountedOn(ctx context.Context, content *kube.Content) (bool, error) {
	for _, s := range r.Snapshots.ByIndex(kube.ByContent, content.Name) {
		if s.DeletionTimestamp != nil || !binding.CountsOn(s, content.Name) {
			continue
		}
		live, err := kube.Fetch[*snapv1.VolumeSnapshot](ctx, r.Client, kube.KeyOf(s))
		switch {
		case kube.IsGone(err):
		case err != nil:
			return false, fmt.Errorf("reading a snapshot that names the content: %w", err)
		case live.DeletionTimestamp == nil && binding.CountsOn(live, content.Name):
			return true, nil
		}
	}
	return false, nil
}

// searchCounting is isCountedOn without a cache, of a content whose deletion the snapshot that it points at does not forbid. Where that one
// counts on the content, which was made for it, and goes, as is ordinary, nobody else is looked for: one that was imported may have been led
// from one snapshot to another. Whoever may not search does not know, and deletes nothing; only
// where no snapshot may be read the other half's mark has to do.
func (r *round) searchCounting(ctx context.Context, content *kube.Content, referred *snapv1.VolumeSnapshot, state snapshot.SnapshotState) (bool, error) {
	ordinary := state == snapshot.Deleting && binding.CountsOn(referred, content.Name) && binding.IsNamedFor(&content.VolumeSnapshotContent)
	if content.DeletionTimestamp == nil || ordinary || state == snapshot.Unknown || state == snapshot.Alive {
		return false, nil
	}
	for s, err := range kube.FetchAll[*snapv1.VolumeSnapshot](ctx, r.Client, "", metav1.ListOptions{}) {
		switch {
		case err != nil:
			return false, fmt.Errorf("looking for a snapshot that has its data in the content: %w", err)
		case s.DeletionTimestamp == nil && binding.CountsOn(s, content.Name):
			return true, nil
		}
	}
	return false, nil
}

// fetchSharer names another content that stays and has the same snapshot at the driver, empty when there is
// none. An administrator makes such contents to use one snapshot in two namespaces.
//
// The cache says whom to read. Where it holds the contents of one node only, the others are searched for: one
// of another node, or of none, keeps the snapshot as well.
func (r *round) fetchSharer(ctx context.Context, content *kube.Content) (string, error) {
	id := snapshot.DataHandle(&content.VolumeSnapshotContent)
	if id == "" {
		return "", nil
	}
	handle := kube.HandleKey(content.Spec.Driver, id)
	keeps := func(live *kube.Content) (bool, error) {
		if live.UID == content.UID || kube.ContentHandle(live) != handle {
			return false, nil
		}
		return r.stays(ctx, live)
	}
	if r.options.NodeDeployment {
		return r.search(ctx, id, keeps)
	}
	for _, other := range r.Contents.ByIndex(kube.ByHandle, handle) {
		if other.UID == content.UID {
			continue
		}
		live, err := kube.Fetch[*kube.Content](ctx, r.Client, kube.KeyOf(other))
		switch {
		case kube.IsGone(err):
			continue
		case err != nil:
			return "", fmt.Errorf("reading another content with the same handle: %w", err)
		}
		if found, err := keeps(live); err != nil || found {
			return live.Name, err
		}
	}
	return "", nil
}

// search names the first content that fits, of all that there are, read live; empty when none does.
func (r *round) search(ctx context.Context, id string, fits func(*kube.Content) (bool, error)) (string, error) {
	for live, err := range kube.FetchAll[*kube.Content](ctx, r.Client, "", metav1.ListOptions{}) {
		if err != nil {
			return "", fmt.Errorf("looking for the content of snapshot %q: %w", id, err)
		}
		if found, err := fits(live); err != nil || found {
			return live.Name, err
		}
	}
	return "", nil
}

// stays tells whether a content keeps its snapshot at the driver. One that is being deleted does while its
// VolumeSnapshot lives. Of those that go, each may delete what they share.
func (r *round) stays(ctx context.Context, content *kube.Content) (bool, error) {
	if content.DeletionTimestamp == nil {
		return true, nil
	}
	_, state, err := r.fetchSnapshot(ctx, content)
	if err != nil {
		return false, err
	}
	_, marked := content.Annotations[wellknown.AnnBeingDeleted]
	return state == snapshot.Alive || state == snapshot.Unknown && !marked, nil
}
