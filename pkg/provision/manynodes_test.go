// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
)

// A claim that goes round many full nodes, with an answer lost at each: what is written must be read by the next process. Catches a
// bound that only who reads knows.
func TestManyNodesAreRead(t *testing.T) {
	var left *Attempt
	for i := range 70 {
		attempt := created(t, plain(withTopology, node("n1"), func(in *ClaimInput) { in.Attempt = left }))
		next := *attempt.asOpen()
		next.Node, next.Full = fmt.Sprint("n", i), 1 // as for a node of that name
		c := plain(node(next.Node)).Claim
		outcome, ok := AfterCreate(Answer{Attempt: &next, Err: failure(codes.ResourceExhausted), Claim: c}).(Reschedule)
		if !ok {
			t.Fatal("not given back")
		}
		left = outcome.Left
	}
	w, err := BuildRecord(left)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(len(w.Body), "bytes", len(left.row()), "attempts")
	if _, err := ParseRecord(w, nil); err != nil {
		t.Error("what was written is not read:", err)
	}
}

// An entry whose second attempt is of another claim. Catches one that is believed.
func TestPriorOfAnotherClaim(t *testing.T) {
	a := created(t, plain())
	other := *a
	ref, volume := *a.Ref, a.Volume.DeepCopy()
	ref.UID, volume.Spec.ClaimRef.UID = "another", "another"
	other.Ref, other.Volume = &ref, volume
	other.Node = "n9"
	next := *a
	next.Prior = &other
	w, err := BuildRecord(&next)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ParseRecord(w, nil); err == nil {
		t.Error("read, with attempts of", got.Ref.UID, "and", got.Prior.Ref.UID)
	}
}

// A removal that an earlier process has left, and the same one of this process. Catches a row in which the first does not run any more.
func TestOpenRemovalStaysOpen(t *testing.T) {
	own, found := *created(t, plain()).asOpen(), *created(t, plain()).asOpen()
	own.Undoing = &Undoing{Handle: "h"}
	found.Undoing = &Undoing{Handle: "h", Open: true}
	if both := own.Beside(&found); !both.Undoing.Open {
		t.Error("a try of the removal may still run, and that is forgotten")
	}
}
