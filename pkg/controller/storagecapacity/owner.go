// SPDX-License-Identifier: Apache-2.0

package storagecapacity

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// awaitOwner finds the owner, for as long as that takes. Only what waiting cannot cure is an error.
func (c *Controller) awaitOwner(ctx context.Context) (*metav1.OwnerReference, error) {
	after := c.RetryStart
	for {
		owner, err := FetchOwner(ctx, c.Client, kube.Key{Namespace: c.Namespace, Name: c.Pod}, c.options.OwnerLevel)
		if err == nil || fault.IsTerminal(err) || ctx.Err() != nil {
			return owner, err
		}
		klog.FromContext(ctx).Error(err, "The capacity objects wait for their owner", "again", after)
		timer := c.Clock.NewTimer(after)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-timer.C():
		}
		after = min(2*after, c.RetryMax)
	}
}

// FetchOwner walks from a pod to what owns it, so many controllers up; level 0 is the pod itself, and there
// is no owner below that. It is read live because it is read once.
func FetchOwner(ctx context.Context, client kube.Client, pod kube.Key, level int) (*metav1.OwnerReference, error) {
	if level < 0 {
		return nil, nil
	}
	found, err := kube.Fetch[*kube.Pod](ctx, client, pod)
	if err != nil {
		err = fmt.Errorf("looking for the owner of capacity objects: reading pod %s, which NAMESPACE and POD_NAME name: %w", pod, err)
		if apierrors.IsNotFound(err) {
			return nil, fault.Terminal(err)
		}
		return nil, err
	}
	here := reference(metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: found.Name, UID: found.UID})
	var object metav1.Object = found
	for hop := range level {
		above := metav1.GetControllerOf(object)
		if above == nil {
			return nil, fault.Terminal(fmt.Errorf("looking for the owner of capacity objects: --capacity-ownerref-level=%d, but after %d of these steps %s %s/%s has no controlling owner, cannot unwind the ownership further",
				level, hop, here.Kind, pod.Namespace, here.Name))
		}
		here = reference(*above)
		if hop == level-1 {
			break // what the last step leads to is not read: its reference says all
		}
		if object, err = fetchWorkload(ctx, client, pod.Namespace, here); err != nil {
			return nil, err
		}
	}
	return &here, nil
}

// reference is what is written on objects. It does not hold up the deletion of the owner, which would take a
// right on its finalizers.
func reference(of metav1.OwnerReference) metav1.OwnerReference {
	controller := true
	return metav1.OwnerReference{APIVersion: of.APIVersion, Kind: of.Kind, Name: of.Name, UID: of.UID, Controller: &controller}
}

// fetchWorkload reads what stands between a pod and its owner, which is known by the reference to it.
func fetchWorkload(ctx context.Context, client kube.Client, namespace string, ref metav1.OwnerReference) (metav1.Object, error) {
	var object metav1.Object
	var err error
	key := kube.Key{Namespace: namespace, Name: ref.Name}
	switch ref.APIVersion + " " + ref.Kind {
	case "apps/v1 ReplicaSet":
		object, err = kube.Fetch[*kube.ReplicaSet](ctx, client, key)
	case "apps/v1 DaemonSet":
		object, err = kube.Fetch[*kube.DaemonSet](ctx, client, key)
	case "apps/v1 StatefulSet":
		object, err = kube.Fetch[*kube.StatefulSet](ctx, client, key)
	case "apps/v1 Deployment":
		object, err = kube.Fetch[*kube.Deployment](ctx, client, key)
	default:
		return nil, fault.Terminal(fmt.Errorf("looking for the owner of capacity objects: the owners of a %s of %s cannot be read, use a --capacity-ownerref-level that ends there", ref.Kind, ref.APIVersion))
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("looking for the owner of capacity objects: reading %s %s: %w", ref.Kind, key, err)
	case object.GetUID() != ref.UID:
		return nil, fmt.Errorf("looking for the owner of capacity objects: %s %s is not the one that the pod has come from", ref.Kind, key)
	}
	return object, nil
}
