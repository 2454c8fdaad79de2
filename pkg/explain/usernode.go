// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// trouble is what is wrong with a node, empty if nothing is or if it may not be read, which the reader remembers.
func (w *waits) trouble(ctx context.Context, name string) string {
	if known, ok := w.nodes[name]; ok {
		return known
	}
	node, err := kube.Fetch[*corev1.Node](ctx, w.client, kube.Key{Name: name})
	switch {
	case apierrors.IsNotFound(err):
		w.nodes[name] = fmt.Sprintf("node %s does not exist any more", name)
	case err != nil:
		w.nodes[name] = ""
	default:
		return w.troubleOf(ctx, node)
	}
	return w.nodes[name]
}

func (w *waits) troubleOf(ctx context.Context, node *corev1.Node) string {
	if known, ok := w.nodes[node.Name]; ok {
		return known
	}
	w.nodes[node.Name] = w.unready(node)
	if w.nodes[node.Name] == "" {
		w.nodes[node.Name] = w.silent(ctx, node.Name)
	}
	return w.nodes[node.Name]
}

// unready is what the node's own condition says.
func (w *waits) unready(node *corev1.Node) string {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return fmt.Sprintf("node %s has not been ready for %s: %s", node.Name, span(w.Clock.Since(c.LastTransitionTime.Time)), c.Message)
		}
	}
	return ""
}

// silent asks the lease of the kubelet: the condition of a node that has lost its power says for most of a minute, and
// where nobody watches nodes for ever, that it is ready.
func (w *waits) silent(ctx context.Context, name string) string {
	lease, err := kube.Fetch[*coordinationv1.Lease](ctx, w.client, kube.Key{Namespace: corev1.NamespaceNodeLease, Name: name})
	if err != nil || lease.Spec.RenewTime == nil {
		return ""
	}
	lasts := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
	if age := w.Clock.Since(lease.Spec.RenewTime.Time); lasts > 0 && age > lasts {
		return fmt.Sprintf("nothing has been heard of the kubelet of node %s for %s", name, span(age))
	}
	return ""
}
