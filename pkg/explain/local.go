// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/controller/volume"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// askLocal prepares to ask as the process on the node would that the claim is for. It returns false when there
// is no such node yet, and then says so.
func (l *claimLook) askLocal(ctx context.Context, m *Machine, options *claim.Options, deps *claim.Deps) bool {
	if !options.NodeDeployment {
		return true
	}
	node := annotation(l.claim, wellknown.AnnSelectedNode)
	if node == "" && l.claim.Spec.VolumeName == "" && l.class != nil && !waitsForConsumer(l.class) {
		words, advice := fmt.Sprintf("No node has taken the claim yet. The provisioner of each node does that when its driver has the room and the class allows the node, within %s; whichever is first writes its node's name into the claim and makes the volume.", span(options.Racing.Max)),
			"see what the provisioners on the nodes log about the claim, and whether any of their drivers has the room"
		if !options.Racing.Immediate {
			words, advice = "Does nothing: --node-deployment-immediate-binding=false leaves claims with immediate binding alone.",
				"use a class with volumeBindingMode WaitForFirstConsumer in a new claim, or drop the flag"
		}
		var found []hindrance
		if options.Racing.Immediate {
			found = slices.Concat(l.unserved(ctx, l.choices), l.misplaced(ctx))
		}
		l.unasked(*m, words, adviseAgainst(found, []string{advice})...)
		l.hinder(nil, found)
		return false
	}
	if node == "" {
		node = "-" // the claim waits for its consumer, whatever the node
	}
	deps.Local = options.Serving(node, nil)
	if l.claim.Spec.VolumeName == "" {
		l.reportNode(ctx, m, node,
			fmt.Sprintf("remove the annotation %s from the claim: the scheduler, or another node, takes it then", wellknown.AnnSelectedNode))
	}
	return true
}

// askVolumeLocal prepares to ask as the process on the node would that made the volume.
func (l *claimLook) askVolumeLocal(ctx context.Context, m *Machine, deps *volume.Deps) {
	made := provision.MadeOn(l.volume, l.Driver.Name)
	if made == "" {
		return
	}
	deps.Local, deps.Patience = l.rooms.Claim.Serving(made, nil), l.rooms.Claim.Racing.Max
	if l.volume.Status.Phase == corev1.VolumeBound && l.volume.DeletionTimestamp == nil {
		l.reportNode(ctx, m, made) // nothing is to be done, and the data may be well: the name alone may be wrong
		return
	}
	l.reportNode(ctx, m, made,
		"if the node comes back under its name, its provisioner goes on by itself",
		fmt.Sprintf("if it does not, and its data is lost or not needed: kubectl patch pv %s --type=merge -p '{\"metadata\":{\"finalizers\":null}}', then kubectl delete pv %[1]s", l.volume.Name))
}

// reportNode says which node's provisioner is meant, and what can be done if the node is gone.
func (l *claimLook) reportNode(ctx context.Context, m *Machine, node string, remedies ...string) {
	if node == "-" {
		return
	}
	state := node
	switch _, err := kube.Fetch[*corev1.Node](ctx, l.client, kube.Key{Name: node}); {
	case apierrors.IsNotFound(err):
		state += ", which does not exist (any more): nobody works on this, unless its provisioner was started with a wrong NODE_NAME"
		m.Advice = append(m.Advice, remedies...)
	case err != nil:
		state += ", of which is not known whether it exists"
	}
	m.Object.State = append(m.Object.State, Fact{"the provisioner of node", state})
}
