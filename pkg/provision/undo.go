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
}

// Begun is the undo as it has to be on record before the removal is asked for.
func (u Undo) Begun() Undo {
	next := *u.Attempt
	next.Undoing = &Undoing{Handle: u.Handle, Why: fault.Shorten(u.Err.Error(), fault.MaxText)}
	u.Attempt = &next
	return u
}

// AfterFailure is the attempt once the removal has failed. A refusal that is certain leaves the volume there, and the
// driver is asked for it again, because it may have mended it; all else is repeated.
func (u Undo) AfterFailure(err error) *Attempt {
	if fault.ProvesNothing(err) {
		return u.Attempt
	}
	next := *u.Attempt
	next.Undoing = nil
	return &next
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
