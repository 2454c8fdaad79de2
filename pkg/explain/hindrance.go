// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// hindrance is something that no machine looks at, and that keeps its next step from coming to anything.
type hindrance struct {
	why    string
	advice []string
	// alone says that nothing else helps as long as it lasts.
	alone bool
}

// adviseAgainst puts what helps against hindrances before what helps otherwise.
func adviseAgainst(found []hindrance, otherwise []string) []string {
	var advice []string
	for _, h := range found {
		advice = append(advice, h.advice...)
		if h.alone {
			otherwise = nil
		}
	}
	return append(advice, otherwise...)
}

// hinder tells of the machine that was asked last what is in the way of its step, or that nothing is.
func (l *look) hinder(step any, found []hindrance) {
	m := &l.report.Machines[len(l.report.Machines)-1]
	for _, h := range found {
		m.Hindrances = append(m.Hindrances, h.why)
	}
	switch step.(type) {
	case provision.Create, snapshot.CreateContent:
		if len(found) == 0 {
			m.Sentence = strings.TrimSuffix(m.Sentence, ".") + ": nothing is in the way."
		}
	}
}

// hindrances are those of a claim without a volume: what is in the way of a step that goes on, or of a pod that it waits
// for. A nil step is that of a claim which was given to no driver.
func (l *claimLook) hindrances(ctx context.Context, step provision.ClaimStep) []hindrance {
	isGoing := false
	switch step.(type) {
	case provision.Create, provision.AskRoom, provision.BecomeOwner:
		isGoing = true
	}
	isWaiting := waitsForConsumer(l.class) && annotation(l.claim, wellknown.AnnSelectedNode) == ""
	if l.claim.Spec.VolumeName != "" || l.claim.DeletionTimestamp != nil {
		return nil
	}
	if !isGoing && !isWaiting {
		return l.behind(step)
	}
	found, misplaced := l.unserved(ctx, l.choices), l.misplaced(ctx)
	if _, calls := step.(provision.Create); calls && len(found) == 0 {
		found = append(found, l.silence()...)
	}
	found = append(found, misplaced...)
	if isGoing {
		found = append(found, withoutRoom(misplaced, l.failure())...)
	}
	return found
}

// withoutRoom leaves away what helps against a lack of room where no place is allowed: there is none to make it in.
func withoutRoom(misplaced, failed []hindrance) []hindrance {
	for i := range failed {
		if len(misplaced) > 0 && fault.CodeIn(failed[i].why) == "ResourceExhausted" {
			failed[i].advice = nil
		}
	}
	return failed
}

// lacksSecret tells a step that was put in place of a call, because there is no such secret.
func lacksSecret(step any) bool {
	reject, ok := step.(provision.Reject)
	var status apierrors.APIStatus
	return ok && errors.As(reject.Err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "secrets"
}

// behind is what a step that does not go on leaves unsaid.
func (l *claimLook) behind(step any) []hindrance {
	_, isRejected := step.(provision.Reject)
	_, isGivenBack := step.(provision.Reschedule)
	switch {
	case !isRejected && !isGivenBack:
		return nil
	case lacksSecret(step):
		return l.refusal()
	default:
		return l.unsettled()
	}
}

// unsettled is an answer of the driver that leaves open what became of the request. What is decided here is not what comes next then: the
// request is on record, and goes on without the class that is looked for.
func (l *claimLook) unsettled() []hindrance {
	var found []hindrance
	for _, h := range l.failure() {
		out := slices.DeleteFunc(h.advice, func(a string) bool { return !strings.HasPrefix(a, provision.Outdated) })
		_, certain := answers[fault.CodeIn(h.why)]
		if certain && len(out) == 0 || !fault.IsFromDriver(h.why) || fault.IsUnreachedIn(h.why) {
			continue
		}
		found = append(found, hindrance{advice: out, why: h.why + ". What became of that request is open: the running provisioner repeats the very same one before it does anything of what is said here"})
	}
	return found
}

// refusal is what was told last of a claim if that was a right that the provisioner lacks. Whoever asks may have it, and is told of what
// would be found out only with it.
func (l *claimLook) refusal() []hindrance {
	return slices.DeleteFunc(l.failure(), func(h hindrance) bool { return !isRefusal(h.why) })
}

// isRefusal tells a right that is lacking by what the API server says then.
func isRefusal(message string) bool { return strings.Contains(message, " is forbidden: ") }
