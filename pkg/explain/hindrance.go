// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"slices"
	"strings"

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
	if l.claim.Spec.VolumeName != "" || l.claim.DeletionTimestamp != nil || !isGoing && !isWaiting {
		return nil
	}
	found := slices.Concat(l.unserved(ctx, l.choices), l.misplaced(ctx))
	if isGoing {
		found = append(found, l.failure()...)
	}
	return found
}
