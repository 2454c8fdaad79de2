// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Outcome is what follows from a call of CreateVolume.
//
//sumtype:decl
type Outcome interface{ isOutcome() }

type (
	// Provisioned: the volume is right; its PersistentVolume is to be written.
	Provisioned struct{ Attempt *Attempt }
	// KeepTrying: the outcome is open, and the attempt stays as it is. After is zero for the usual
	// growing delay. Tell: there is no claim, and it is to be told once that the volume may have been made.
	KeepTrying struct {
		Attempt *Attempt
		Err     error
		After   time.Duration
		Tell    bool
	}
	// GoWithout: one call is made without the secret, which does not exist any more.
	GoWithout struct{ Attempt *Attempt }
	// LetGo: the claim is gone, and all that could be done to settle the attempt was done.
	LetGo struct {
		Name string
		Err  error
	}
	// TryLater: nothing was made; a new request is built next time. Left is an earlier request that may have
	// made the volume, nil when there is none.
	TryLater struct {
		Err  error
		Left *Attempt
	}
	// Infeasible: nothing was made, and the same request would fail again.
	Infeasible struct {
		Err  error
		Left *Attempt
	}
)

func (Provisioned) isOutcome() {}
func (KeepTrying) isOutcome()  {}
func (GoWithout) isOutcome()   {}
func (LetGo) isOutcome()       {}
func (TryLater) isOutcome()    {}
func (Infeasible) isOutcome()  {}
func (Reschedule) isOutcome()  {}

// Answer is what a call of CreateVolume came to.
type Answer struct {
	Attempt *Attempt
	Now     time.Time
	// Volume is the driver's, when Err is nil.
	Volume *csi.Volume
	Err    error
	// Claim is the claim as it is now, nil when it is gone.
	Claim *corev1.PersistentVolumeClaim
	// Class is that of the claim as it is now, nil when it is gone, and Topology tells which nodes there are; nil when nobody knows.
	Class    *storagev1.StorageClass
	Topology *topology.Index
}

// AfterCreate decides what follows from the driver's answer.
func AfterCreate(a Answer) Outcome {
	switch {
	case a.Err == nil:
		return checkVolume(a)
	case classOf(a.Err) == fault.Uncertain:
		return afterUncertain(a)
	case a.mayPriorBeIt():
		return a.askPrior()
	case a.Attempt.Open && (a.Attempt.Bare || fault.ProvesNothing(a.Err)):
		return afterNothing(a)
	case a.isElsewhere() && a.canReschedule():
		return Reschedule{Err: a.advised(), Left: a.Attempt.Prior}
	case classOf(a.Err) == fault.Infeasible:
		return Infeasible{Err: a.advised(), Left: a.Attempt.Prior}
	default:
		return TryLater{Err: a.advised(), Left: a.Attempt.Prior}
	}
}

// isElsewhere tells that another node may be served: there may be room, or the data that this one lacks.
func (a Answer) isElsewhere() bool {
	class := classOf(a.Err)
	return class == fault.Exhausted || class == fault.Infeasible && a.Attempt.Away != ""
}

// advised adds what is known of the source and the driver may have failed on, and where to look.
func (a Answer) advised() error {
	var known []string
	for _, sentence := range []string{a.Attempt.Away, a.Attempt.Short} {
		if sentence != "" {
			known = append(known, sentence)
		}
	}
	if len(known) == 0 {
		known = a.blamed()
	}
	if len(known) == 0 {
		return a.Err
	}
	return advise(a.Err, "%s", strings.Join(known, "; "))
}

// Compare begins the advice about a refusal that is about the words or the numbers of the request.
const Compare = "compare the words of the driver with "

// blamed says what a refusal is about, since a driver does not know from where it has its parameters, and when it is asked again.
func (a Answer) blamed() []string {
	if a.Claim == nil || a.Attempt.Volume == nil || !fault.IsOfRequest(a.Err) {
		return nil
	}
	text := fmt.Sprintf("%sthe parameters of StorageClass %s, and with what is asked for", Compare, a.Attempt.Volume.Spec.StorageClassName)
	if classOf(a.Err) != fault.Infeasible {
		return []string{text}
	}
	return []string{text, fmt.Sprintf("it is asked again %s, or at once with %s", nextTry, annotating("pvc -n "+a.Claim.Namespace+" "+a.Claim.Name))}
}

func classOf(err error) fault.Class {
	if e := fault.Of(err); e != nil {
		return e.Class
	}
	return fault.Uncertain
}

func afterUncertain(a Answer) Outcome {
	if !a.isAbandoned() || !fault.IsVague(a.Err) {
		return KeepTrying{Attempt: a.Attempt.asOpen(), Err: a.repeated()}
	}
	return afterVague(a)
}

// canReschedule tells that another node may have room, and that the scheduler has not chosen one yet.
func (a Answer) canReschedule() bool {
	if a.isAbandoned() || a.Attempt.Node == "" {
		return false
	}
	node, ok := a.Claim.Annotations[wellknown.AnnSelectedNode]
	return ok && node == a.Attempt.Node
}

// checkVolume compares the volume with what was asked for. A volume that is too small or lacks the data
// of its source must never be bound.
func checkVolume(a Answer) Outcome {
	volume, request := a.Volume, a.Attempt.Request
	size, least := volume.GetCapacityBytes(), request.GetCapacityRange().GetRequiredBytes()
	made := a.Attempt.asMade(volume)
	switch {
	case volume.GetVolumeId() == "":
		return KeepTrying{Attempt: a.Attempt.asOpen(), Err: errors.New("the driver answered with a volume without id")}
	case size != 0 && size < least:
		return Undo{
			Attempt: a.Attempt.asOpen(), Handle: volume.GetVolumeId(), orphaned: "Cleanup",
			Err: fmt.Errorf("created volume capacity %d less than requested capacity %d", size, least),
		}
	case request.GetVolumeContentSource() != nil && volume.GetContentSource() == nil:
		return Undo{
			Attempt: a.Attempt.asOpen(), Handle: volume.GetVolumeId(), orphaned: "cleanup",
			Err: errors.New("volume content source missing"),
		}
	}
	if _, err := BuildVolume(a.Attempt, volume); err != nil {
		return Undo{Attempt: a.Attempt.asOpen(), Handle: volume.GetVolumeId(), orphaned: "Cleanup", Err: err}
	}
	return Provisioned{made}
}

// Unstorable follows when the API refuses the PersistentVolume of a volume for what the driver has said of
// it. Nothing could ever be bound to that volume, and repeating the same words does not help; it is removed
// and asked for anew, because it would be lost with the claim.
func Unstorable(attempt *Attempt, err error) Undo {
	return Undo{Attempt: attempt.Unmade(), Handle: attempt.Made.GetVolumeId(), orphaned: "Cleanup", Err: advise(err, unstorableAdvice)}
}

const unstorableAdvice = "Kubernetes does not store what the driver or the StorageClass say of the volume: that has to change; the volume is made anew then"

// Strayed follows when a volume was made for a claim that has another one, or is to have it, on another node.
func Strayed(attempt *Attempt) Undo {
	return Undo{
		Attempt: attempt.Unmade(), Handle: attempt.Made.GetVolumeId(), orphaned: "Cleanup",
		Err: fmt.Errorf("volume %s was made on node %q while the claim went to another node", attempt.Name(), attempt.Node),
	}
}
