// SPDX-License-Identifier: Apache-2.0

package content

import (
	"context"
	"errors"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
	"github.com/csi-tandem/csi-tandem/pkg/throttle"
)

// remove deletes a snapshot that the driver has taken in place of a lost one. What any content has is never deleted here:
// the driver may have answered with a snapshot of somebody else.
func (r *round) remove(ctx context.Context, in snapshot.ContentInput, step snapshot.Remove) error {
	secrets, err := r.secret(ctx, step.Secret, step.WithoutSecret)
	if err != nil {
		return r.withoutSecret(ctx, in, snapshot.Delete{Handle: step.Handle, Secret: step.Secret}, err)
	}
	kept, err := r.fetchHolder(ctx, step.Handle)
	if err != nil {
		return err
	}
	if kept != "" {
		klog.FromContext(ctx).Info("the driver has answered with the snapshot of another content", "handle", step.Handle, "content", kept)
		return r.settle(ctx, snapshot.AfterRemove(in, nil), nil)
	}
	klog.FromContext(ctx).V(2).Info("deleting a snapshot that was taken in place of a lost one", "handle", step.Handle)
	waiting := throttle.WithRecheck(throttle.WithFlow(ctx, classOf(r.content)), func(ctx context.Context) error {
		switch kept, err := r.fetchHolder(ctx, step.Handle); {
		case err != nil:
			return err
		case kept != "":
			return errChanged
		case in.Attempt.Lost:
			return nil // not the content's, whatever becomes of that
		}
		return r.recheck(ctx, step.Handle)
	})
	err = r.Driver.DeleteSnapshot(waiting, &csi.DeleteSnapshotRequest{SnapshotId: step.Handle, Secrets: secrets})
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errChanged):
		return fault.RetryAfter(err, soon)
	}
	in.Now = r.Clock.Now()
	after := snapshot.AfterRemove(in, err)
	if after.Attempt.Replacement == "" {
		err = nil
	}
	return r.settle(ctx, after, err)
}

// fetchHolder names a content that has a snapshot, empty when none has. The cache knows most of them, and may show one that is gone; that
// it has none proves nothing, so all are read live. It is a search that few drivers ever cause.
func (r *round) fetchHolder(ctx context.Context, id string) (string, error) {
	handle := kube.HandleKey(r.DriverName, id)
	for _, cached := range r.Contents.ByIndex(kube.ByHandle, handle) {
		live, err := kube.Fetch[*kube.Content](ctx, r.Client, kube.KeyOf(cached))
		switch {
		case kube.IsGone(err):
		case err != nil:
			return "", fmt.Errorf("reading another content with the same handle: %w", err)
		case kube.ContentHandle(live) == handle:
			return live.Name, nil
		}
	}
	return r.search(ctx, id, func(live *kube.Content) (bool, error) { return kube.ContentHandle(live) == handle, nil })
}
