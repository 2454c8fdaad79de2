// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"context"
	"errors"
	"fmt"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// clear takes apart what snapshots of this name have left that are gone.
func (r *round) clear(ctx context.Context) error {
	var failed []error
	for _, content := range r.Contents.ByIndex(kube.BySnapshot, kube.IndexValue(r.key)) {
		cached, ok := r.Snapshots.Lookup(r.key)
		if !ok {
			cached = nil
		}
		state := snapshot.StateOf(&content.VolumeSnapshotContent, cached)
		if err := r.clearOne(ctx, content, state); err != nil && !kube.IsGone(err) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func (r *round) clearOne(ctx context.Context, content *kube.Content, state snapshot.SnapshotState) error {
	live := false
	for range maxSteps {
		in := snapshot.LeftoverInput{Content: &content.VolumeSnapshotContent, State: state, Live: live, Options: r.snapshotOptions()}
		switch snapshot.NextForLeftover(in).(type) {
		case snapshot.FetchSnapshot:
			// The cache may lag behind a content that another process has just made.
			found, err := kube.Fetch[*snapv1.VolumeSnapshot](ctx, r.Client, r.key)
			switch {
			case kube.IsGone(err):
				found = nil
			case err != nil:
				return fmt.Errorf("reading the snapshot of content %s: %w", content.Name, err)
			}
			state, live = snapshot.StateOf(&content.VolumeSnapshotContent, found), true
		case snapshot.DeleteContent:
			if err := kube.Delete(ctx, r.Client, content); err != nil {
				return fmt.Errorf("deleting content %s, whose snapshot is gone: %w", content.Name, err)
			}
			klog.FromContext(ctx).Info("content deleted, because its snapshot is gone", "content", content.Name)
			return nil // its own event goes on
		case snapshot.MarkContent:
			marked, err := kube.Patch(ctx, r.Client, content, func(c *kube.Content) {
				kube.SetAnnotation(c, wellknown.AnnBeingDeleted, wellknown.AnnMarkYes)
			})
			if err != nil {
				return fmt.Errorf("marking content %s, whose snapshot is gone: %w", content.Name, err)
			}
			content = marked
		default:
			return nil
		}
	}
	return nil
}

// hasLeft tells that a snapshot that is gone has left a content.
func (c *Controller) hasLeft(s *snapv1.VolumeSnapshot) bool {
	for _, content := range c.Contents.ByIndex(kube.BySnapshot, kube.IndexValue(kube.KeyOf(s))) {
		if content.Spec.VolumeSnapshotRef.UID == s.UID {
			return true
		}
	}
	return false
}
