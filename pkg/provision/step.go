// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
)

// ClaimStep is what happens next to a claim.
//
//sumtype:decl
type ClaimStep interface{ isClaimStep() }

type (
	// Ignore: nothing to do, until something changes.
	Ignore struct{ Why string }
	// Wait: look again after a while.
	Wait struct {
		Why   string
		After time.Duration
	}
	// AlreadyProvisioned: the volume exists; whatever was remembered for it may go.
	AlreadyProvisioned struct{ Volume *corev1.PersistentVolume }
	// LeaveToPopulator: the source is of a kind that another component handles.
	LeaveToPopulator struct{}
	// ReadSource: the source is needed to decide.
	ReadSource struct{ Source Source }
	// ProtectSource: put our finalizer on the source before the driver reads it.
	ProtectSource struct{ Source Source }
	// ReadAttributes: the VolumeAttributesClass is needed to decide.
	ReadAttributes struct{ Name string }
	// ReadNamespace: the claim's namespace is needed for its labels and annotations.
	ReadNamespace struct{ Name string }
	// Create: a new attempt, to be remembered before the driver is called.
	Create struct{ Attempt *Attempt }
	// Resume: the same call again, to learn what became of the first.
	Resume struct{ Attempt *Attempt }
	// Save: the driver has made the volume, and its PersistentVolume is still to be written.
	Save struct{ Attempt *Attempt }
	// AskRoom: how much room the driver has on this node, and among how many nodes, is needed to decide. The
	// request is nil when only the latter can be asked for.
	AskRoom struct{ Request *csi.GetCapacityRequest }
	// BecomeOwner: select the node for a claim that nobody has selected one for.
	BecomeOwner struct{ Node string }
	// StandBack: the claim is not for this node now. The race begins anew when it is looked at again.
	StandBack struct {
		Why   string
		After time.Duration
		// Err is told to the user if Tell is set; where it is Shared many nodes come to the very same, and one of them is heard.
		Err          error
		Tell, Shared bool
	}
	// Discard: the driver has made a volume that another node was chosen for meanwhile; it is removed.
	Discard struct{ Attempt *Attempt }
	// FinishUndo: the removal of a wrong volume was asked for and has no certain outcome; it is asked for again.
	FinishUndo struct{ Attempt *Attempt }
	// Reject: nothing was asked of the driver, for a reason that is told, and tried again later. A silent
	// one is told in the log only. One that waits for something that is on its way is no failure. After is
	// zero for the usual growing delay. Claim is set where a volume is about a claim that has to know too.
	Reject struct {
		Err     error
		Claim   *corev1.ObjectReference
		Silent  bool
		Waiting bool
		After   time.Duration
	}
	// Reschedule: the selected node cannot have the volume; the scheduler should choose another. Left is a
	// request that may have made it all the same, nil when there is none.
	Reschedule struct {
		Err  error
		Left *Attempt
	}
)

func (Ignore) isClaimStep()             {}
func (Wait) isClaimStep()               {}
func (AlreadyProvisioned) isClaimStep() {}
func (LeaveToPopulator) isClaimStep()   {}
func (ReadSource) isClaimStep()         {}
func (ProtectSource) isClaimStep()      {}
func (ReadAttributes) isClaimStep()     {}
func (ReadNamespace) isClaimStep()      {}
func (Create) isClaimStep()             {}
func (Resume) isClaimStep()             {}
func (Save) isClaimStep()               {}
func (AskRoom) isClaimStep()            {}
func (BecomeOwner) isClaimStep()        {}
func (StandBack) isClaimStep()          {}
func (Discard) isClaimStep()            {}
func (FinishUndo) isClaimStep()         {}
func (Reject) isClaimStep()             {}
func (Reschedule) isClaimStep()         {}

// VolumeStep is what happens next to a PersistentVolume.
//
//sumtype:decl
type VolumeStep interface{ isVolumeStep() }

type (
	// Protect: put our finalizer on, so that the volume is deleted in whichever order claim and
	// PersistentVolume go.
	Protect struct{}
	// Unprotect: take our finalizer off, because the volume is to be kept. Hollow says so of one that the driver had removed before, and
	// is nil of all others.
	Unprotect struct{ Hollow error }
	// WaitDetached: some node may still use the volume, under the name of a PersistentVolume of it.
	WaitDetached struct{ Node, Volume string }
	// Confirm: everything allows the deletion; read the PersistentVolume live and decide again.
	Confirm struct{}
	// Delete: the driver removes the volume.
	Delete struct {
		Handle string
		// Secret is nil when the driver needs none.
		Secret *corev1.SecretReference
		// MayLackSecret: the secret has been missing for so long that one try goes without.
		MayLackSecret bool
	}
	// Release: the driver has removed the volume; the PersistentVolume goes.
	Release struct{}
)

func (Ignore) isVolumeStep()       {}
func (Wait) isVolumeStep()         {}
func (Reject) isVolumeStep()       {}
func (Protect) isVolumeStep()      {}
func (Unprotect) isVolumeStep()    {}
func (WaitDetached) isVolumeStep() {}
func (Confirm) isVolumeStep()      {}
func (Delete) isVolumeStep()       {}
func (Release) isVolumeStep()      {}

// SourceStep is what happens next to an object that volumes were made from.
//
//sumtype:decl
type SourceStep interface{ isSourceStep() }

type (
	// Hold: somebody still needs the source.
	Hold struct{ By string }
	// Lift: take our finalizer off the source.
	Lift struct{}
)

func (Ignore) isSourceStep() {}
func (Hold) isSourceStep()   {}
func (Lift) isSourceStep()   {}
