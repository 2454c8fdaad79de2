// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"fmt"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
)

// Undo removes a volume that is there and wrong, unless a PersistentVolume holds its handle.
//
// A removal without a certain outcome may be done late. Should the driver give the same id for the next call, which it
// does when ids follow from names, that volume would be bound and then destroyed. So the attempt remembers what it
// removes, also beyond the end of the process, and nothing is asked for anew before the removal has an end.
type Undo struct {
	Attempt *Attempt
	Handle  string
	Err     error
	// orphaned begins the sentence that is added when the removal fails.
	orphaned string
}

func (Undo) isOutcome() {}

// Undoing is a volume whose removal was begun.
type Undoing struct {
	Handle string `json:"handle"`
	Why    string `json:"why,omitempty"`
	// Open tells that a try of it may still run at the driver. What another process has left may.
	Open bool `json:"-"`
}

// Begun is the undo as it has to be on record before the removal is asked for.
func (u Undo) Begun() Undo {
	next, undoing := *u.Attempt, Undoing{Handle: u.Handle, Why: fault.Shorten(u.Err.Error(), fault.MaxText)}
	if before := u.Attempt.Undoing; before != nil && before.Handle == u.Handle {
		undoing.Open = before.Open
	}
	next.Undoing = &undoing
	u.Attempt = &next
	return u
}

// IsRecorded tells that the removal has to be on record before it is asked for. A volume whose id is never stored is bound to nobody, however
// late it is removed, and the id would not fit.
func (u Undo) IsRecorded() bool { return len(u.Handle) <= maxHandle }

// AfterFailure is the attempt once the removal has failed, with the errors of its tries in order. A refusal that is certain leaves the
// volume there, and the driver is asked for it again, because it may have mended it; all else is repeated. So it is when an earlier try
// may still run: the driver can refuse the next before it looks for the volume, and a late removal would destroy what was bound
// meanwhile. Only a removal that is done ends that, and another removal for the same claim comes before anything is asked for.
func (u Undo) AfterFailure(tries ...error) *Attempt {
	next, undoing := *u.Attempt, *u.Attempt.Undoing
	var last error
	for _, last = range tries {
		undoing.Open = undoing.Open || fault.MayRun(last)
	}
	next.Undoing = &undoing
	if !undoing.Open && !next.Bare && !fault.ProvesNothing(last) {
		next.Undoing = nil
	}
	return removalFirst(next.row()).asParking()
}

// Resumed is the undo that an attempt was left in.
func (a *Attempt) Resumed() Undo {
	return Undo{Attempt: a, Handle: a.Undoing.Handle, Err: errors.New(a.Undoing.Why), orphaned: "Cleanup"}
}

// Orphaned is the error when the wrong volume could not be removed either.
func (u Undo) Orphaned(err error) error {
	return fmt.Errorf("%w. %s of volume %s failed, volume is orphaned: %w", u.Err, u.orphaned, u.Attempt.Name(), err)
}

// nextUndo goes on with a removal, whatever the claim says by now.
func nextUndo(in ClaimInput) ClaimStep {
	if in.Now.Before(in.Attempt.NotBefore) {
		return Wait{Why: "the next repeat is not due yet", After: in.Attempt.NotBefore.Sub(in.Now)}
	}
	return FinishUndo{in.Attempt}
}
