// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
)

// maxPrompt is how many prompt repeats come first for an attempt whose claim is gone and whose driver
// gives answers that say nothing.
const maxPrompt = 3

// patience is how long such an attempt is repeated with the usual growing delay after them. An outage of
// the storage behind the driver lasts longer than seconds; what is kept meanwhile is a little memory, and
// what is let go too early is a volume that nobody finds.
const patience = time.Hour

// maxFull is how many answers in a row tell that there is no room for an attempt whose outcome is open.
// One may be about a moment, or come from a driver that refuses before it looks for the name.
const maxFull = 2

// IsAbandoned tells that nobody waits for a volume any more.
func IsAbandoned(claim *corev1.PersistentVolumeClaim) bool {
	return claim == nil || claim.DeletionTimestamp != nil
}

func (a Answer) isAbandoned() bool { return IsAbandoned(a.Claim) }

// afterNothing follows an answer that is final for its own call, while an earlier one may have made the
// volume all the same.
func afterNothing(a Answer) Outcome {
	if a.isAbandoned() {
		// Whether the first call has made the volume stays open: a driver that lacks the source often says so before it
		// looks for the name. But whoever deletes the source need not wait for that.
		if fault.IsNotFound(a.Err) {
			a.Attempt = a.Attempt.asFreed()
		}
		return afterVague(a)
	}
	next := *a.Attempt.asOpen()
	if classOf(a.Err) != fault.Exhausted {
		return KeepTrying{Attempt: &next, Err: a.repeated()}
	}
	next.Full = a.Attempt.Full + 1
	if next.Full < maxFull || a.Attempt.Node == "" {
		return KeepTrying{Attempt: &next, Err: a.repeated()}
	}
	// The pod would wait for a full node for ever. The next request has the same name, so that a volume
	// which an earlier call has made is its answer, or in its way: it cannot be lost while the claim is
	// there. Should the claim go, this request is settled after all.
	next.Parked = true
	if a.canReschedule() {
		return Reschedule{Err: a.advised(), Left: &next}
	}
	return TryLater{Err: a.advised(), Left: &next}
}

// afterVague counts the answers that say nothing about an attempt whose claim is gone. All attempts for it are asked in turn.
func afterVague(a Answer) Outcome {
	next := *a.Attempt.asOpen()
	if next.Vague.IsZero() {
		next.Vague = a.Now
	}
	if next.Prompt < maxPrompt {
		after := time.Second << next.Prompt
		return KeepTrying{Attempt: next.asPrompted(a.Now.Add(after)).turned(), Err: a.Err, After: after}
	}
	if !slices.ContainsFunc(next.asked(), func(p *Attempt) bool { return p.Vague.IsZero() || a.Now.Sub(p.Vague) < patience }) {
		return LetGo{Name: next.Name(), Err: a.Err}
	}
	outcome := next.untold(a.Err)
	outcome.Attempt = outcome.Attempt.turned()
	return outcome
}

// mayPriorBeIt tells that what the driver takes for another volume may be that of an attempt before this one.
func (a Answer) mayPriorBeIt() bool {
	return a.Attempt.Prior != nil && !a.isAbandoned() && fault.IsExisting(a.Err)
}

// askPrior goes back to the attempt before this one, whose volume is in the way: that is the claim's then, wherever the claim is to be by now.
// Without it the claim would wait for ever, since a driver has one volume of a name.
func (a Answer) askPrior() Outcome {
	next := *a.Attempt.Prior
	if a.Attempt.Open {
		next = *a.Attempt.asOpen().turned()
	}
	next.Parked = false
	return KeepTrying{Attempt: &next, Err: a.advised()}
}

// untold goes on with an attempt, and tells once that nobody knows what became of it.
func (a *Attempt) untold(err error) KeepTrying {
	next := *a
	next.Told = true
	return KeepTrying{Attempt: &next, Err: err, Tell: !a.Told}
}

// AfterNoSecret decides about an attempt that is to be repeated after its claim is gone, and whose secret
// certainly does not exist: namespaces go with their claims and secrets. Like a deletion it waits, then
// makes one try without, and then counts what it gets as answers that say nothing.
func AfterNoSecret(a Answer) Outcome {
	next := *a.Attempt.asOpen()
	switch {
	case next.NoSecret.IsZero():
		next.NoSecret = a.Now
		return next.untold(lackAbandonedSecret(a.Err))
	case a.Now.Sub(next.NoSecret) < SecretPatience:
		return KeepTrying{Attempt: &next, Err: lackAbandonedSecret(a.Err)}
	case !next.Bare:
		next.Bare = true
		return GoWithout{&next}
	default:
		return afterVague(a)
	}
}

// Equipped is the attempt once its secret was found.
func (a *Attempt) Equipped() *Attempt {
	if a.NoSecret.IsZero() {
		return a
	}
	next := *a
	next.NoSecret, next.Bare = time.Time{}, false
	return &next
}
