// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/trace"
)

// task is a source and what is known about it.
type task[T kube.Object] struct {
	source T
	in     provision.SourceInput
	isOurs func(context.Context, T) (bool, error)
}

// act does the next step of a source. Every reason to hold one ends with an event that brings it back.
func act[T kube.Object](ctx context.Context, client kube.Client, store *kube.Store[T], t task[T]) error {
	logger := klog.FromContext(ctx)
	about(ctx, t)
	step, err := next(ctx, t)
	if err != nil {
		return err
	}
	reconcile.Chose(ctx, step)
	switch s := step.(type) {
	case provision.Ignore:
		logger.V(4).Info("nothing to do", "why", s.Why)
		return nil
	case provision.Hold:
		logger.V(4).Info("source is still needed", "by", s.By)
		return nil
	case provision.Lift:
		return lift(ctx, client, store, t)
	}
	return fmt.Errorf("a step of source %s has no effect here", kube.KeyOf(t.source))
}

func about[T kube.Object](ctx context.Context, t task[T]) {
	if o := t.in.Object; o != nil && trace.IsTraced(ctx) {
		trace.About(ctx, trace.Subject{
			Kind: kube.ResourceOf[T]().Kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: string(o.GetUID()), Operation: trace.Release,
		})
	}
}

// next decides twice: on the caches, and before a finalizer goes, on whose source it is.
func next[T kube.Object](ctx context.Context, t task[T]) (provision.SourceStep, error) {
	step := provision.NextSourceStep(t.in)
	if _, ok := step.(provision.Lift); !ok {
		return step, nil
	}
	ours, err := t.isOurs(ctx, t.source)
	if err == nil && !ours {
		step = provision.Hold{By: provision.OtherDriver}
	}
	return step, err
}

func lift[T kube.Object](ctx context.Context, client kube.Client, store *kube.Store[T], t task[T]) error {
	logger := klog.FromContext(ctx)
	patched, err := kube.Patch(ctx, client, t.source, func(o T) {
		kube.RemoveFinalizer(o, provision.SourceFinalizer(t.in.Kind))
	})
	switch {
	case kube.IsGone(err):
		return nil
	case apierrors.IsForbidden(err) && t.source.GetDeletionTimestamp() == nil:
		// Rights of clusters from before the finalizer: it was put there by somebody who had more. What is to go is tried again, since a right or the
		// end of what refuses is no event.
		logger.V(2).Info("source keeps its finalizer: patching it is not allowed", "err", err)
		return nil
	case err != nil:
		return fmt.Errorf("releasing source: %w", err)
	}
	if patched.GetDeletionTimestamp() == nil || len(patched.GetFinalizers()) > 0 {
		// Without finalizers a terminating object is gone with this answer, and must not be remembered.
		store.Assume(patched)
	}
	logger.V(2).Info("source released")
	return nil
}
