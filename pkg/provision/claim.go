// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// ClaimInput is all that the next step of a claim depends on.
type ClaimInput struct {
	Config
	Topology *topology.Index
	Now      time.Time
	// Claim is nil when it is gone.
	Claim *corev1.PersistentVolumeClaim
	// Class is the class of the claim, nil when it does not exist.
	Class *storagev1.StorageClass
	// Volume is a PersistentVolume under one of the names that the claim's would have, or nil.
	Volume *corev1.PersistentVolume
	// Attempt is what was begun for this claim and has not ended; nil when nothing is open.
	Attempt *Attempt
	// Refusal is set while the driver's last answer was that the request cannot succeed.
	Refusal *Refusal
	// Source is nil until the source was read.
	Source *SourceState
	// Grants are those of the source's namespace, when it is not the claim's.
	Grants Grants
	// Namespace is nil until the claim's namespace was read, which few flags need.
	Namespace *NamespaceState
	// Attributes is nil until the VolumeAttributesClass was read.
	Attributes *AttributesState
	// Race is what is remembered of a claim without a node, and Room nil until it was asked for.
	Race Race
	Room *RoomState

	// name is that of the volume where it is given, whatever the flags say by now.
	name string
	// written is the class as users have written it, while Class is what the driver understands.
	written *storagev1.StorageClass
}

// Refusal remembers what the driver found infeasible, so that the same is not asked again at once.
type Refusal struct {
	Until time.Time
	Class types.UID
	Claim *corev1.PersistentVolumeClaim
}

// AttributesState is what was read of a VolumeAttributesClass.
type AttributesState struct {
	Class *storagev1.VolumeAttributesClass
	Err   error
}

// NextClaimStep says what to do about a claim now.
func NextClaimStep(in ClaimInput) ClaimStep {
	switch {
	case in.Attempt == nil:
		return nextRequest(in)
	case in.Attempt.Undoing != nil:
		return nextUndo(in)
	case in.Attempt.Parked && in.Attempt.Made == nil && skip(in) == "":
		return besideParked(in)
	default:
		return continueAttempt(in)
	}
}

// besideParked goes on with a claim that still waits, and forgets nothing of what may have been made for
// it on another node.
func besideParked(in ClaimInput) ClaimStep {
	in.name = in.Attempt.Name() // under another one the driver would not find what may have been made
	switch step := nextRequest(in).(type) {
	case Create:
		return Create{step.Attempt.after(in.Attempt)}
	case Ignore:
		return Wait{Why: step.Why}
	default:
		return step
	}
}

func nextRequest(in ClaimInput) ClaimStep {
	if why := skip(in); why != "" {
		return Ignore{why}
	}
	if node := in.elsewhere(in.Claim); node != "" {
		return Ignore{fmt.Sprintf("the claim is for node %q, whose provisioner makes the volume", node)}
	}
	if left := in.refused(); left > 0 {
		return Wait{
			Why:   fmt.Sprintf("skipping volume provisioning for pvc %s, because provisioning previously failed with infeasible error", in.Claim.UID),
			After: left,
		}
	}
	if in.Class == nil {
		return Reject{Err: fmt.Errorf("storageClass %q not found", ClassName(in.Claim)), Silent: true}
	}
	if waitsForConsumer(in) {
		return Ignore{"the claim waits for its first consumer"}
	}
	if in.Volume != nil {
		return existing(in)
	}
	if !in.isKnown(in.Class.Provisioner) {
		return Ignore{"the class of the claim belongs to another driver"}
	}
	if in.isLocal() && in.Claim.Annotations[wellknown.AnnSelectedNode] == "" {
		return nextRace(in)
	}
	return prepare(in)
}

// continueAttempt goes on with what was begun, whatever the claim says by now: only the very same
// request can find out what became of the first one. That another node's process has made the claim's volume says nothing of it.
func continueAttempt(in ClaimInput) ClaimStep {
	switch {
	case in.Volume != nil && belongsTo(in.Volume, in.Attempt.Ref.UID) && !in.isMadeElsewhere(in.Volume):
		return AlreadyProvisioned{in.Volume}
	case in.Attempt.Made != nil && isStray(in):
		return Discard{in.Attempt}
	case in.Attempt.Made != nil:
		return Save{in.Attempt}
	case in.Now.Before(in.Attempt.NotBefore):
		// An event that wakes us early must not use up one of the few repeats.
		return Wait{Why: "the next repeat is not due yet", After: in.Attempt.NotBefore.Sub(in.Now)}
	default:
		return Resume{in.Attempt}
	}
}

// isStray tells that a volume was made here for a claim which another node's process is to serve by now: a
// driver of one node does not know what that of another makes under the same name.
func isStray(in ClaimInput) bool {
	claim := in.Claim
	return claim != nil && claim.DeletionTimestamp == nil && claim.Spec.VolumeName == "" && in.elsewhere(claim) != ""
}

// skip gives the reason why a claim is none of our business, or nothing.
func skip(in ClaimInput) string {
	switch {
	case in.Claim == nil:
		return "the claim is gone"
	case in.Claim.Spec.VolumeName != "":
		return "the claim has a volume"
	case !in.IsClaimOurs(in.Claim):
		return "the claim is not for this driver"
	case in.Claim.DeletionTimestamp != nil:
		// New work for it would be undone at once. Open attempts do not come here.
		return "the claim is being deleted"
	default:
		return ""
	}
}

// refused is how long the last refusal still holds: it ends when the time is over, when the class was
// replaced, or when the claim was changed.
func (in ClaimInput) refused() time.Duration {
	r := in.Refusal
	switch {
	case r == nil:
		return 0
	case in.Class != nil && in.Class.UID != r.Class:
		return 0
	case !equality.Semantic.DeepEqual(in.Claim.Spec, r.Claim.Spec), !maps.Equal(in.Claim.Annotations, r.Claim.Annotations):
		return 0
	case !maps.Equal(in.Metadata.ofClaim(in.Claim), in.Metadata.ofClaim(r.Claim)):
		return 0
	default:
		return r.Until.Sub(in.Now)
	}
}

func waitsForConsumer(in ClaimInput) bool {
	mode := in.Class.VolumeBindingMode
	return mode != nil && *mode == storagev1.VolumeBindingWaitForFirstConsumer && in.Claim.Annotations[wellknown.AnnSelectedNode] == ""
}

// existing decides about a PersistentVolume that has the name of the claim's. The name with the whole
// UID cannot be anybody else's; a shortened one can.
func existing(in ClaimInput) ClaimStep {
	ref := in.Volume.Spec.ClaimRef
	full := in.Volume.Name == wellknown.VolumeNameFromUID(string(in.Claim.UID))
	if full && (ref == nil || ref.UID == "") || belongsTo(in.Volume, in.Claim.UID) {
		return AlreadyProvisioned{in.Volume}
	}
	remedy := "use a longer --volume-name-uuid-length"
	if full {
		remedy = "delete this claim and make it anew"
	} else if in.NameTemplate != "" {
		remedy = "use another --volume-name-template"
	}
	return Reject{Err: fmt.Errorf("the name %s of the new volume is taken by a PersistentVolume of %s; %s", in.Volume.Name, describe(in.Volume.Spec.ClaimRef), remedy)}
}

func belongsTo(volume *corev1.PersistentVolume, claim types.UID) bool {
	return volume.Spec.ClaimRef != nil && volume.Spec.ClaimRef.UID == claim
}

func describe(ref *corev1.ObjectReference) string {
	if ref == nil {
		return "no claim"
	}
	return fmt.Sprintf("claim %q", ref.Namespace+"/"+ref.Name)
}

// ClassName is the class of a claim; the old annotation wins, even when it is empty.
func ClassName(claim *corev1.PersistentVolumeClaim) string {
	if name, ok := claim.Annotations[wellknown.AnnBetaStorageClass]; ok {
		return name
	}
	if claim.Spec.StorageClassName == nil {
		return ""
	}
	return *claim.Spec.StorageClassName
}

// selectedNode is the node that the volume is meant for. The alpha key counts only when the new one is
// absent.
func selectedNode(claim *corev1.PersistentVolumeClaim) string {
	if node, ok := claim.Annotations[wellknown.AnnSelectedNode]; ok {
		return node
	}
	return claim.Annotations[wellknown.AnnAlphaSelectedNode]
}
