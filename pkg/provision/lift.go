// SPDX-License-Identifier: Apache-2.0

package provision

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// SourceInput is all that the next step of a source depends on.
type SourceInput struct {
	// Kind is VolumeSnapshot or PersistentVolumeClaim.
	Kind string
	// Object is the source, nil when it is gone.
	Object metav1.Object
	// Users are the claims that name the source, finished ones too.
	Users []*corev1.PersistentVolumeClaim
	// InUse tells that a volume is being made from it, for a claim that may be gone already.
	InUse bool
	// Grants are those of the namespace of the source. They matter to users of other namespaces only.
	Grants Grants
	// Node is the node that is served, empty where all are: what other nodes make is not in InUse.
	Node string
	// OwnersTurnOver tells that the processes of other nodes have had time enough to see to what they make from a source that goes.
	OwnersTurnOver bool
}

// NextSourceStep says whether our finalizer may leave a source. All users are counted: the first of two
// restores that ends must not take away the protection of the other.
func NextSourceStep(in SourceInput) SourceStep {
	switch {
	case in.Object == nil || !hasFinalizer(in.Object.GetFinalizers(), SourceFinalizer(in.Kind)):
		return Ignore{"the source is gone or not protected by us"}
	case in.Kind == wellknown.KindPersistentVolumeClaim && in.Object.GetDeletionTimestamp() == nil:
		// It costs nothing on a living claim, and saves the write for its next clone.
		return Ignore{"the source claim is not being deleted"}
	case in.InUse:
		return Hold{"a volume that is being made"}
	}
	for _, claim := range in.Users {
		// A claim that came after the deletion is refused, and must not hold the source for ever.
		if IsWaiting(claim) && !isLate(claim, in.Object) && in.mayUse(claim) {
			return Hold{"claim " + claim.Namespace + "/" + claim.Name}
		}
	}
	return Lift{}
}

// mayUse tells that a claim can get the data of the source. One of another namespace cannot without a grant, and whoever owns the source
// can neither see nor delete such a claim. What is unknown is no "no".
func (in SourceInput) mayUse(claim *corev1.PersistentVolumeClaim) bool {
	if claim.Namespace == in.Object.GetNamespace() || in.Grants.Unknown != nil {
		return true
	}
	source, group := SourceOf(claim)
	return source != nil && isGranted(in.Grants.All, claim.Namespace, source, group) || in.maySeemIdle(claim)
}

// maySeemIdle tells that the volume of a claim may be being made on another node at this very moment, by a grant that was withdrawn meanwhile.
func (in SourceInput) maySeemIdle(claim *corev1.PersistentVolumeClaim) bool {
	node := claim.Annotations[wellknown.AnnSelectedNode]
	return in.Node != "" && node != "" && node != in.Node && !in.OwnersTurnOver
}

// OtherDriver holds the sources whose data this driver does not have, as far as can be told.
const OtherDriver = "the provisioner of another driver, which lifts it"

// SourceFinalizer is our finalizer on sources of a kind.
func SourceFinalizer(kind string) string {
	if kind == wellknown.KindVolumeSnapshot {
		return wellknown.FinalizerSnapshotAsSource
	}
	return wellknown.FinalizerCloneSource
}

// IsWaiting tells that a claim has no volume yet and may still get one.
func IsWaiting(claim *corev1.PersistentVolumeClaim) bool {
	pending := claim.Status.Phase == corev1.ClaimPending || claim.Status.Phase == ""
	return pending && claim.Spec.VolumeName == "" && claim.DeletionTimestamp == nil
}
