// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Local is the part of the cluster that a process serves which runs beside the driver of one node. The zero
// value is the whole cluster.
type Local struct {
	// Node is the node's name.
	Node string
	// Segment is where the driver says that the node is; empty when places do not matter.
	Segment topology.Segment
}

// Racing are the flags about claims that nobody has selected a node for.
type Racing struct {
	// Immediate lets a process take claims with immediate binding.
	Immediate bool
	// Base is the width of the delays before that, and Max what they grow to.
	Base, Max time.Duration
}

// isLocal tells that the process serves one node.
func (c Config) isLocal() bool { return c.Node != "" }

// elsewhere names the node that a claim is for, when it is not the one that is served.
func (c Config) elsewhere(claim *corev1.PersistentVolumeClaim) string {
	if node := claim.Annotations[wellknown.AnnSelectedNode]; c.isLocal() && node != c.Node {
		return node
	}
	return ""
}

// MadeOn is the node whose process made a volume; empty when no such process did. The identity of a process
// is noted in each volume, and that of one for a node ends with the node's name.
func MadeOn(volume *corev1.PersistentVolume, driver string) string {
	if volume.Spec.CSI == nil {
		return ""
	}
	return wellknown.NodeOfIdentity(volume.Spec.CSI.VolumeAttributes[wellknown.VolumeAttributeIdentity], driver)
}

// IsHere tells whether the process sees to the end of a volume. Who made it does; any that it can be reached
// from may; and one that says nothing of its place is left to whoever made it, since the driver of another
// node would say that it is gone.
func (c Config) IsHere(volume *corev1.PersistentVolume) bool {
	made := MadeOn(volume, c.Driver)
	if !c.isLocal() || made == c.Node {
		return true
	}
	if volume.Spec.NodeAffinity == nil || len(c.Segment) == 0 {
		return made == ""
	}
	reachable, err := topology.AccessibleFrom(volume.Spec.NodeAffinity, c.Node, c.Segment.Labels())
	return reachable && err == nil
}

// isApart tells that a volume is certainly not one of the node's driver: the process of another node made it, and its place, told in the
// words of this node's driver, is not here. Anything less is no proof: what was written by hand, or says nothing of its place, may be here.
func (c Config) isApart(volume *corev1.PersistentVolume) bool {
	return c.isMadeElsewhere(volume) && topology.IsOutside(volume.Spec.NodeAffinity, c.Segment)
}

// isMadeElsewhere tells that the process of another node made a volume.
func (c Config) isMadeElsewhere(volume *corev1.PersistentVolume) bool {
	made := MadeOn(volume, c.Driver)
	return c.isLocal() && made != "" && made != c.Node
}

// localStep is what a process for one node makes of a step about a volume. What several can reach is first
// left to the one that made it, so that they do not all do the same.
func (in VolumeInput) localStep(step VolumeStep) VolumeStep {
	if !in.isLocal() {
		return step
	}
	made := MadeOn(in.Volume, in.Driver)
	if !in.IsHere(in.Volume) {
		return Ignore{"the volume is on another node, whose provisioner sees to it"}
	}
	if left := in.Racing.Max - in.Now.Sub(in.Since); made != "" && made != in.Node && left > 0 && !in.Since.IsZero() {
		return Wait{Why: "the volume was made on node " + made + ", whose provisioner goes first", After: left}
	}
	return step
}

// KeepsClaim tells whether a process needs to know of a claim at all. Of those with a volume it is enough to
// see the node's own, and those of which nobody can tell: a claim that names a volume keeps it. Those without
// are few, and may have the data of a source that somebody else protects.
func (c Config) KeepsClaim(claim *corev1.PersistentVolumeClaim) bool {
	asked := claim.Annotations[wellknown.AnnStorageProvisioner] + claim.Annotations[wellknown.AnnBetaStorageProvisioner]
	switch {
	case !c.isLocal(), hasFinalizer(claim.Finalizers, wellknown.FinalizerCloneSource):
		return true
	case claim.Spec.VolumeName == "":
		return c.IsClaimOurs(claim) || claim.Spec.DataSource != nil || claim.Spec.DataSourceRef != nil
	case asked != "" && !c.IsClaimOurs(claim):
		return false
	default:
		return c.elsewhere(claim) == "" || claim.Annotations[wellknown.AnnSelectedNode] == ""
	}
}

// KeepsVolume tells whether a process needs to know of a volume at all.
func (c Config) KeepsVolume(volume *corev1.PersistentVolume) bool {
	return !c.isLocal() || c.IsVolumeOurs(volume) && c.IsHere(volume)
}
