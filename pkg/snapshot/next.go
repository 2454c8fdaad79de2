// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/binding"
	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/params"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// NextSnapshotStep decides what happens next to a VolumeSnapshot.
func NextSnapshotStep(in SnapshotInput) SnapshotStep {
	if in.Snapshot == nil {
		if isSourceFree(in) {
			return ReleaseSource{}
		}
		return Ignore{"there is no such snapshot"}
	}
	if binding.IsMember(in.Snapshot) {
		return Ignore{"member of a group snapshot, goes with its group"}
	}
	switch is, of := whose(in); is {
	case foreign:
		return nextForeign(in, of)
	case unread:
		return FetchVolume{in.Claim.Spec.VolumeName}
	case nobodys:
		return nextStranger(in)
	case ours:
	}
	if in.Snapshot.DeletionTimestamp != nil {
		return nextDeletion(in)
	}
	return nextLiving(in)
}

func nextLiving(in SnapshotInput) SnapshotStep {
	source := in.Snapshot.Spec.Source
	switch {
	case (source.PersistentVolumeClaimName == nil) == (source.VolumeSnapshotContentName == nil):
		return reject(in, wellknown.ReasonSnapshotValidationError,
			"Exactly one of PersistentVolumeClaimName and VolumeSnapshotContentName should be specified", "say one of them "+newSnapshot)
	case binding.IsPreProvisioned(in.Snapshot):
		return nextImported(in)
	case in.Content != nil:
		return nextTaken(in)
	default:
		return nextNew(in)
	}
}

// nextImported is for a snapshot that names a content made by hand.
func nextImported(in SnapshotInput) SnapshotStep {
	s, c := in.Snapshot, in.Content
	if *s.Spec.Source.VolumeSnapshotContentName == "" {
		return Ignore{"names no content"}
	}
	verdict := binding.Judge(s, c)
	switch {
	case verdict.State == binding.Missing && !in.ContentLive:
		// Before users are told that it is missing, the cache is not enough: it may lag behind.
		return FetchContent{binding.ContentName(s)}
	case verdict.Reason != "":
		return reject(in, verdict.Reason, verdict.Message, adviseVerdict(in, verdict))
	case s.Spec.VolumeSnapshotClassName != nil && in.Class == nil && binding.BoundName(s) == "":
		return rejectClass(in, *s.Spec.VolumeSnapshotClassName)
	}
	return nextAccepted(in, verdict.State)
}

// nextAccepted is for a snapshot whose content may be, or is, bound to it.
func nextAccepted(in SnapshotInput, state binding.State) SnapshotStep {
	s, c := in.Snapshot, in.Content
	if missing := missingFinalizers(s, c.Spec.DeletionPolicy); len(missing) > 0 {
		return Protect{Finalizers: missing}
	}
	bind, needed := bindOf(in)
	switch {
	case state == binding.Unbound && c.DeletionTimestamp != nil:
		return reject(in, wellknown.ReasonSnapshotBindFailed,
			fmt.Sprintf("Snapshot failed to bind VolumeSnapshotContent, %s is being deleted", c.Name), "name another content "+newSnapshot)
	case (state == binding.Unbound || needed) && c.DeletionTimestamp == nil:
		return bind
	default:
		return nextStatus(in)
	}
}

// bindOf collects what a pre-provisioned content lacks.
func bindOf(in SnapshotInput) (Bind, bool) {
	s, c, bind := in.Snapshot, in.Content, Bind{}
	if s.Spec.VolumeSnapshotClassName != nil && c.Spec.VolumeSnapshotClassName == nil {
		bind.Class = *s.Spec.VolumeSnapshotClassName
	}
	// A content made by hand often has a class and no secret of its own. The reference is taken from the
	// class once and recorded, so that the deletion does not depend on the class.
	named, _ := secretAnnotations(c)
	if !named && in.Class != nil && (bind.Class != "" || c.Spec.VolumeSnapshotRef.UID == "") {
		tokens := params.SnapshotTokens(c.Name, s.Namespace, s.Name)
		if ref, err := params.ResolveSecret(params.Snapshotter, in.Class.Parameters, tokens); err == nil && ref != nil {
			bind.Annotations = annotationsOf(ref)
		}
	}
	_, bind.Unmark = c.Annotations[wellknown.AnnBeingDeleted]
	lacks := !has(c.Finalizers, wellknown.FinalizerContent)
	return bind, lacks || bind.Class != "" || bind.Annotations != nil || bind.Unmark
}

// nextTaken is for a snapshot of a claim that has its content.
func nextTaken(in SnapshotInput) SnapshotStep {
	s, c := in.Snapshot, in.Content
	if verdict := binding.Judge(s, c); verdict.Reason != "" {
		return reject(in, verdict.Reason, verdict.Message, adviseVerdict(in, verdict))
	}
	if missing := missingFinalizers(s, c.Spec.DeletionPolicy); len(missing) > 0 {
		return Protect{Finalizers: missing}
	}
	claim := in.Claim
	if !isReady(s) && claim != nil && claim.DeletionTimestamp == nil && !has(claim.Finalizers, wellknown.FinalizerSourceClaim) {
		return ProtectSource{}
	}
	if c.DeletionTimestamp == nil && !has(c.Finalizers, wellknown.FinalizerContent) {
		return ProtectContent{}
	}
	return nextStatus(in)
}

// nextStatus brings the snapshot's status up to what the content says.
func nextStatus(in SnapshotInput) SnapshotStep {
	s, c := in.Snapshot, in.Content
	if c.Status == nil && s.Status == nil {
		if age := in.Now.Sub(c.CreationTimestamp.Time); age < earlyBind {
			return Wait{"the driver has the snapshot in hand", max(earlyBind-age, time.Millisecond)}
		}
	}
	if status, told, changed := BuildSnapshotStatus(s, c); changed {
		return CopyStatus{status, told}
	}
	if isReady(s) && isSourceFree(in) {
		return ReleaseSource{}
	}
	if !isReady(s) {
		return nextWaiting(in)
	}
	return Ignore{"settled"}
}

// reject shows an error of ours and says that the snapshot is not ready.
func reject(in SnapshotInput, reason, message, advice string) Reject {
	return rejection(in, Reject{Reason: reason, Message: message, Advice: advice}, false)
}

// rejectClass shows an error about the class, which says nothing about data that is there.
func rejectClass(in SnapshotInput, class string) Reject {
	return rejection(in, Reject{Reason: wellknown.ReasonGetSnapshotClassFailed, Message: fmt.Sprintf(
		"Failed to get snapshot class with error volumesnapshotclass.snapshot.storage.k8s.io %q not found", class), Advice: adviseClass(class)}, true)
}

func rejection(in SnapshotInput, step Reject, keepReady bool) Reject {
	message := bounded(told(step.Message, step.Advice))
	step.Message = message
	current := in.Snapshot.Status
	same := current != nil && current.Error != nil && current.Error.Message != nil && fault.IsSameMessage(*current.Error.Message, message)
	unready := keepReady || current != nil && current.ReadyToUse != nil && !*current.ReadyToUse
	if same && unready {
		return step
	}
	step.Quiet = same
	step.Status = &snapv1.VolumeSnapshotStatus{}
	if current != nil {
		step.Status = current.DeepCopy()
	}
	if !same {
		now := metav1.NewTime(in.Now)
		step.Status.Error = &snapv1.VolumeSnapshotError{Time: &now, Message: &message}
	}
	if !keepReady {
		ready := false
		step.Status.ReadyToUse = &ready
	}
	return step
}
