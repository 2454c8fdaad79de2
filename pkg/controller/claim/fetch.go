// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
)

func refOf(key reconcile.Key) *corev1.ObjectReference {
	return &corev1.ObjectReference{Namespace: key.Namespace, Name: key.Name, UID: key.UID}
}

// snapshotted is the volume that a snapshot was taken from, as far as the cache knows one: it is asked for a
// hint only.
func (c *Controller) snapshotted(content *kube.Content) *corev1.PersistentVolume {
	handle := content.Spec.Source.VolumeHandle
	if handle == nil {
		return nil
	}
	volumes := c.Volumes.ByIndex(kube.ByHandle, kube.HandleKey(content.Spec.Driver, *handle))
	if len(volumes) == 0 {
		return nil
	}
	return volumes[0]
}

// fetchNamespace reads a namespace live: it is needed once for a volume, and a cache of all of them for
// nothing else.
func (c *Controller) fetchNamespace(ctx context.Context, name string) *provision.NamespaceState {
	namespace, err := kube.Fetch[*corev1.Namespace](ctx, c.Client, kube.Key{Name: name})
	return &provision.NamespaceState{Namespace: namespace, Err: err}
}
