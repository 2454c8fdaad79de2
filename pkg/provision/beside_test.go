// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
)

// inOrder tells what a claim has: the nodes that its requests are for, and what is being removed.
func inOrder(a *Attempt) string {
	var all []string
	for _, p := range a.row() {
		text := p.Node
		if p.Undoing != nil {
			text += " removes " + p.Undoing.Handle
		}
		if p != a && (!p.Parked || !p.Open || p.Made != nil) {
			text += fmt.Sprintf(" (parked %t, open %t, made %v)", p.Parked, p.Open, p.Made)
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// TestBeside: nothing that may be at the driver is forgotten when what an earlier process has left is found beside what this one has begun, whatever
// each of them has behind it, and removals come first. Catches one that takes two removals for one because their request is the same, one that
// loses what stands behind either, and one that asks for a volume before a removal.
func TestBeside(t *testing.T) {
	base := created(t, plain()).asOpen()
	on := func(node string, behind ...*Attempt) *Attempt {
		next := *base
		next.Node = node
		return inRow(&next, behind...)
	}
	removing := func(handle string, a *Attempt) *Attempt {
		return Undo{Attempt: a, Handle: handle, Err: errors.New("small")}.Begun().Attempt
	}
	parked := func(node string) *Attempt {
		next := *on(node)
		next.Parked = true
		return &next
	}
	for title, c := range map[string]struct {
		own, found *Attempt
		want       string
	}{
		"the very same request":                 {on("n1"), on("n1"), "n1"},
		"the very same removal":                 {removing("a", on("n1")), removing("a", on("n1")), "n1 removes a"},
		"two removals of one request":           {removing("a", on("n1")), removing("b", on("n1")), "n1 removes a, n1 removes b"},
		"own volume, and a removal":             {on("n1").asMade(&csi.Volume{VolumeId: "a"}), removing("b", on("n1")), "n1 removes b, n1"},
		"a removal, and a request":              {removing("a", on("n1")), on("n1"), "n1 removes a, n1"},
		"one behind its own":                    {on("n1", parked("n2")), on("n3"), "n1, n2, n3"},
		"one behind its own, a removal":         {on("n1", parked("n2")), removing("b", on("n3")), "n3 removes b, n1, n2"},
		"one behind what is found":              {on("n1"), removing("b", on("n2", parked("n3"))), "n2 removes b, n1, n3"},
		"one of those behind is the same":       {on("n1", parked("n2")), on("n2", parked("n1")), "n1, n2"},
		"a removal behind, of a broken process": {on("n1"), on("n2", removing("b", parked("n3"))), "n3 removes b, n1, n2"},
		"a request between two removals":        {inRow(removing("a", on("n1")), parked("n2")), removing("b", on("n3")), "n1 removes a, n3 removes b, n2"},
	} {
		if got := inOrder(c.own.Beside(c.found)); got != c.want {
			t.Errorf("%s: %s, want %s", title, got, c.want)
		}
	}
}

// TestRefusedRemovalGivesWay: a removal that is refused for certain ends, but not the other one for the same claim. Catches one after which the
// volume is asked for while the other may still be done late. A record in which a removal is not first is read as if it was.
func TestRefusedRemovalGivesWay(t *testing.T) {
	a := created(t, plain()).asOpen()
	first := Undo{Attempt: a, Handle: "a", Err: errors.New("small")}.Begun()
	second := Undo{Attempt: a, Handle: "b", Err: errors.New("small")}.Begun()
	first.Attempt = first.Attempt.Beside(second.Attempt)
	next := first.AfterFailure(fault.New(fault.DeleteVolume, status.Error(codes.FailedPrecondition, "in use")))
	if got := inOrder(next); got != " removes b, " {
		t.Errorf("%q", got)
	}
	if got := show(NextClaimStep(plain(func(in *ClaimInput) { in.Attempt = next }))); !strings.HasPrefix(got, "FinishUndo") {
		t.Error(got)
	}
	row := next.row()
	slices.Reverse(row)
	written, err := BuildRecord(inRow(row[0], row[1:]...))
	if err != nil {
		t.Fatal(err)
	}
	read, err := ParseRecord(written, nil)
	if err != nil || read.Undoing == nil || len(read.row()) != 2 {
		t.Error(err, read)
	}
}
