// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// lookAtNode is how often a node that is not there is looked for.
const lookAtNode = 30 * time.Second

// checkNode tells when the node that is served is none of the cluster. The scheduler selects it for no claim then, and volumes that are
// made for it are of a node that does not exist. Each kubelet writes a CSINode under its node's name; which nodes there are may be
// listed here, for the sake of their number.
func (l *life) checkNode(ctx context.Context) {
	if l.node == "" || !l.AsksPlace {
		return
	}
	const text = "no CSINode has the name that the variable " + nodeVariable + " gives: set it to the name of the node, in a manifest by fieldPath: spec.nodeName"
	logger := klog.FromContext(ctx)
	for told := false; ; {
		there, err := kube.FetchIsListed[*storagev1.CSINode](ctx, l.client, l.node)
		switch {
		case ctx.Err() != nil, apierrors.IsForbidden(err):
			return // who may not look knows nothing, and the missing right is told as such
		case err == nil && there:
			l.health.note(noteNode, "")
			if told {
				logger.Info("No longer so: "+text, "node", l.node)
			}
			return
		case err == nil && !told:
			told = true
			logger.Error(nil, text, "node", l.node)
			l.health.note(noteNode, l.node+": "+text)
		}
		select {
		case <-ctx.Done():
			return
		case <-l.clock.After(lookAtNode):
		}
	}
}
