// SPDX-License-Identifier: Apache-2.0

package content

import (
	"context"
	"fmt"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"

	"github.com/csi-tandem/csi-tandem/pkg/binding"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// isCountedOn looks for a living snapshot that counts on a content which does not point at it any more: an
// edited reference must not cost that snapshot its data. The cache says whom to ask.
func (r *round) isCountedOn(ctx context.Context, content *kube.Content) (bool, error) {
	if r.Snapshots == nil {
		return false, nil
	}
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

// fetchSharer names another content that stays and has the same snapshot at the driver, empty when there is
// none. An administrator makes such contents to use one snapshot in two namespaces.
func (r *round) fetchSharer(ctx context.Context, content *kube.Content) (string, error) {
	id := snapshot.DataHandle(&content.VolumeSnapshotContent)
	if id == "" {
		return "", nil
	}
	handle := kube.HandleKey(content.Spec.Driver, id)
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
		case kube.ContentHandle(live) != handle:
			continue
		}
		stays, err := r.stays(ctx, live)
		if err != nil || stays {
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
	state, err := r.fetchState(ctx, content)
	if err != nil {
		return false, err
	}
	_, marked := content.Annotations[wellknown.AnnBeingDeleted]
	return state == snapshot.Alive || state == snapshot.Unknown && !marked, nil
}
