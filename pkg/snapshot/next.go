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
	case verdict.State == binding.Unbound && in.Class != nil && in.Class.Driver != c.Spec.Driver && binding.BoundName(s) == "":
		return rejectDriver(in)
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
	class := in.ContentClass
	if s.Spec.VolumeSnapshotClassName != nil && c.Spec.VolumeSnapshotClassName == nil && (in.Class == nil || in.Class.Driver == c.Spec.Driver) {
		bind.Class, class = *s.Spec.VolumeSnapshotClassName, in.Class
	}
	if bind.Class != "" || c.Spec.VolumeSnapshotRef.UID == "" {
		bind.Annotations = secretOf(in, class)
	}
	_, bind.Unmark = c.Annotations[wellknown.AnnBeingDeleted]
	lacks := !has(c.Finalizers, wellknown.FinalizerContent)
	return bind, lacks || bind.Class != "" || bind.Annotations != nil || bind.Unmark
}

// secretOf gives what a pre-provisioned content lacks of its deletion secret. One made by hand often has a class and no secret of
// its own. The reference is taken from the class that it has from now on and recorded, so that the deletion does not depend on
// the class. A class of another driver names its secrets for that one.
func secretOf(in SnapshotInput, class *snapv1.VolumeSnapshotClass) map[string]string {
	s, c := in.Snapshot, in.Content
	if named, _ := secretAnnotations(c); named || class == nil || class.Driver != c.Spec.Driver {
		return nil
	}
	ref, err := params.ResolveSecret(params.Snapshotter, class.Parameters, params.SnapshotTokens(c.Name, s.Namespace, s.Name))
	if err != nil || ref == nil {
		return nil
	}
	return annotationsOf(ref)
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

// rejectDriver shows that the class is not one for the content. Bound all the same, the content would be left alone by its driver's
// sidecar, and its snapshot deleted with the secret of another driver.
func rejectDriver(in SnapshotInput) Reject {
	c := in.Content
	return reject(in, wellknown.ReasonSnapshotBindFailed, fmt.Sprintf(
		"Snapshot failed to bind VolumeSnapshotContent, VolumeSnapshotClass %s is of driver %q, but VolumeSnapshotContent %s is of driver %q",
		in.Class.Name, in.Class.Driver, c.Name, c.Spec.Driver), fmt.Sprintf("name a VolumeSnapshotClass of driver %s, or none, %s", c.Spec.Driver, newSnapshot))
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
