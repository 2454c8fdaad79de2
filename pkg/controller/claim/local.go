// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"flag"
	"fmt"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// AddLocalFlags declares the flags of a process that serves one node.
func (o *Options) AddLocalFlags(fs *flag.FlagSet) {
	fs.BoolVar(&o.NodeDeployment, "node-deployment", o.NodeDeployment,
		"serve only the node that the process is on, beside that node's driver; the NODE_NAME variable names it")
	fs.BoolVar(&o.Racing.Immediate, "node-deployment-immediate-binding", o.Racing.Immediate,
		"take claims with immediate binding, for which nobody selects a node")
	fs.DurationVar(&o.Racing.Base, "node-deployment-base-delay", o.Racing.Base,
		"how far the nodes spread out over time before one takes such a claim; where there are few, they need less")
	fs.DurationVar(&o.Racing.Max, "node-deployment-max-delay", o.Racing.Max,
		"longest delay before a node takes such a claim, and how often one without room looks again")
}

func (o *Options) checkRacing() error {
	switch {
	case !o.NodeDeployment:
		return nil
	case o.Racing.Base <= 0:
		return fmt.Errorf("--node-deployment-base-delay=%v: use a duration such as 20s", o.Racing.Base)
	case o.Racing.Max < o.Racing.Base:
		return fmt.Errorf("--node-deployment-max-delay=%v: use at least --node-deployment-base-delay, which is %v", o.Racing.Max, o.Racing.Base)
	}
	return nil
}

// Local is what a process serves.
type Local = provision.Local

// Serving is what a process serves: a node whose driver is in the given segment, or all if there is no node. The
// segment means nothing where topology is off.
func (o *Options) Serving(node string, segment topology.Segment) provision.Local {
	if !o.Topology {
		segment = nil
	}
	return provision.Local{Node: node, Segment: segment}
}

// Kept says what a process that serves one node keeps in its caches.
type Kept struct{ config provision.Config }

// Kept is what the rooms of a process need to see.
func (o *Options) Kept(driver string, local provision.Local) Kept {
	return Kept{provision.Config{Driver: driver, Migration: translatorOf(driver), Options: o.Options, Local: local}}
}

// Claim tells whether a claim is kept.
func (k Kept) Claim(claim *corev1.PersistentVolumeClaim) bool { return k.config.KeepsClaim(claim) }

// Volume tells whether a PersistentVolume is kept.
func (k Kept) Volume(volume *corev1.PersistentVolume) bool { return k.config.KeepsVolume(volume) }

// Attachment tells whether a VolumeAttachment is kept.
func (k Kept) Attachment(a *storagev1.VolumeAttachment) bool {
	return a.Spec.Attacher == k.config.Driver
}

// Snapshot tells whether a VolumeSnapshot is kept: one that claims may wait for, or that has our finalizer.
func (k Kept) Snapshot(s *snapv1.VolumeSnapshot) bool {
	return !isReady(s) || kube.HasFinalizer(s, wellknown.FinalizerSnapshotAsSource)
}

// TrimVolume keeps, besides what another trimming leaves, who made a volume.
func (k Kept) TrimVolume(trim func(*corev1.PersistentVolume)) func(*corev1.PersistentVolume) {
	return func(v *corev1.PersistentVolume) {
		made := ""
		if v.Spec.CSI != nil {
			made = v.Spec.CSI.VolumeAttributes[wellknown.VolumeAttributeIdentity]
		}
		trim(v)
		if made != "" {
			v.Spec.CSI.VolumeAttributes = map[string]string{wellknown.VolumeAttributeIdentity: made}
		}
	}
}

// CountNodes counts the nodes that may take part in a race.
func CountNodes(client kube.Client) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) { return kube.FetchCount[*storagev1.CSINode](ctx, client) }
}

// raceLane is for the claims that no node is selected for: what is asked about them must not hold up those that
// this node has.
const raceLane = "\x00race"

func (c *Controller) isRaced(claim *corev1.PersistentVolumeClaim) bool {
	return c.config.Node != "" && claim.Annotations[wellknown.AnnSelectedNode] == ""
}
