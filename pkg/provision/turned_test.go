// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

// TestVolumeInTheWay: the driver says of a request that it has another volume of that name, and an earlier request for the claim is open. That one
// is asked again, since it may have made what is in the way. Catches a claim that waits for ever for a volume which is there.
func TestVolumeInTheWay(t *testing.T) {
	in := plain(withTopology, node("n2"))
	earlier := *created(t, plain(withTopology, node("n1"))).asOpen()
	earlier.Parked = true
	first := created(t, in).after(&earlier)
	for title, c := range map[string]struct {
		asked *Attempt
		want  string
	}{
		"its first call":               {first, "n1"},
		"an earlier call may be there": {first.asOpen(), "n1, n2"},
	} {
		answer := Answer{Attempt: c.asked, Now: now, Err: failure(codes.AlreadyExists), Claim: in.Claim}
		kept, ok := AfterCreate(answer).(KeepTrying)
		if !ok || kept.Attempt.Parked || !kept.Attempt.Open || inOrder(kept.Attempt) != c.want {
			t.Errorf("%s: %s", title, show(AfterCreate(answer)))
			continue
		}
		next := in
		next.Attempt = kept.Attempt
		if step, ok := NextClaimStep(next).(Resume); !ok || step.Attempt.Node != "n1" {
			t.Errorf("%s: then %s", title, show(NextClaimStep(next)))
		}
	}
	if !earlier.Parked {
		t.Error("an attempt was changed in place")
	}
	alone := Answer{Attempt: created(t, in).asOpen(), Now: now, Err: failure(codes.AlreadyExists), Claim: in.Claim}
	if got := show(AfterCreate(alone)); got != "KeepTrying: 0s: "+said(codes.AlreadyExists) {
		t.Error("alone:", got)
	}
}

// TestPatienceWithAll: nobody waits any more, and the driver's answers say nothing about the first of two requests. Both are asked in turn, and none
// is let go before nothing was found out about either for an hour. Catches a volume that is left at the driver although the request that made it
// is known.
func TestPatienceWithAll(t *testing.T) {
	earlier := *created(t, plain(withTopology, node("n1"))).asOpen()
	earlier.Parked = true
	attempt, at := created(t, plain(withTopology, node("n2"))).after(&earlier).asOpen(), now
	asked := map[string]int{}
	for range 100 {
		asked[attempt.Node]++
		outcome := AfterCreate(Answer{Attempt: attempt, Now: at, Err: failure(codes.AlreadyExists)})
		kept, ok := outcome.(KeepTrying)
		if !ok {
			if _, ok := outcome.(LetGo); !ok {
				t.Errorf("ends with %s", show(outcome))
			}
			break
		}
		if kept.Attempt.Node == attempt.Node {
			t.Fatalf("the one for %s is asked twice in a row", attempt.Node)
		}
		attempt, at = kept.Attempt, at.Add(max(kept.After, 5*time.Minute))
	}
	if at.Sub(now) < time.Hour+5*time.Minute || asked["n1"] < 6 || asked["n2"] < 6 {
		t.Errorf("after %v: asked %v", at.Sub(now), asked)
	}
	freed := *attempt
	freed.Freed = true
	if got := freed.turned(); !got.IsFreed() || got.Freed || attempt.IsFreed() {
		t.Error("that a source need not stay holds for all requests of the claim")
	}
}
