// SPDX-License-Identifier: Apache-2.0

package attempt_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/attempt"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// slow is an API to which the next request of a verb is on its way for long: it has no answer, and arrives later, as it was sent.
type slow struct {
	*kit.API
	holds  string
	arrive func() error
}

func (s *slow) Patch(ctx context.Context, r kube.Resource, key kube.Key, body kube.PatchBody, into kube.Object) error {
	if s.holds != "patch" {
		return s.API.Patch(ctx, r, key, body, into)
	}
	s.holds = ""
	s.arrive = func() error { return s.API.Patch(ctx, r, key, body, &corev1.ConfigMap{}) }
	return late
}

func (s *slow) Create(ctx context.Context, r kube.Resource, obj, into kube.Object) error {
	if s.holds != "create" {
		return s.API.Create(ctx, r, obj, into)
	}
	s.holds = ""
	s.arrive = func() error { return s.API.Create(ctx, r, obj, &corev1.ConfigMap{}) }
	return late
}

// TestLateOwnWrite: an entry has no answer, is looked for and not found, and its write arrives at some time. Catches a process that takes it for
// something that a person has put there, and lets it stay beside the next one of the claim, to be resumed when all is over; and one that takes it for
// not done although its resource version still holds.
func TestLateOwnWrite(t *testing.T) {
	for when, arrivesIn := range map[string]func(h *kit.Harness, s *slow, sweep func()){
		"before it is looked for": func(_ *kit.Harness, s *slow, sweep func()) { _ = s.arrive(); sweep() },
		"when it was looked for": func(h *kit.Harness, s *slow, sweep func()) {
			h.API.Script(kit.Rule{Verb: "patch", Resource: configMaps, Times: 1, Meanwhile: func() { _ = s.arrive() }})
			sweep()
		},
		"after that": func(_ *kit.Harness, s *slow, sweep func()) { sweep(); _ = s.arrive() },
	} {
		t.Run(when, func(t *testing.T) {
			h := kit.New(t)
			s := &slow{API: h.API}
			a := begin(t, h, "a", func(o *attempt.Options) { o.Client = s })
			put(t, h, a, "other", text("x"))
			a.ParkUnread("other")
			s.holds = "patch"
			if err := a.Put(h.Ctx, "u1", text("one", "P")); err == nil {
				t.Fatal("acknowledged without an answer")
			}
			arrivesIn(h, s, func() {
				if err := a.Sweep(h.Ctx); err != nil {
					t.Fatal(err)
				}
			})
			h.API.Fail("patch", configMaps, late, 1) // makes it look again
			_ = a.Put(h.Ctx, "u2", text("two"))
			if err := a.Sweep(h.Ctx); err != nil {
				t.Fatal(err)
			}
			if n, parked := a.Len(); n != 1 || parked != 1 {
				t.Error("an own write counts as put there by hand:", n, parked)
			}
			put(t, h, a, "u1", text("one"))
			a.Remove("u1")
			if err := a.Sweep(h.Ctx); err != nil {
				t.Fatal(err)
			}
			d := data(h, first)
			delete(d, "part.p") // nobody knows whose it is beside what is not understood
			if len(d) != 2 || d["other"] == "" {
				t.Error("left on record, though it is over:", d)
			}
		})
	}
}

// TestSettledBeforeItArrives: an entry has no answer, its claim is settled, and only then its write arrives. Catches a Settle that goes by what it
// finds: the next process would resume what is over, and might delete what somebody has kept.
func TestSettledBeforeItArrives(t *testing.T) {
	h := kit.New(t)
	s := &slow{API: h.API}
	a := begin(t, h, "a", func(o *attempt.Options) { o.Client = s })
	s.holds = "patch"
	if err := a.Put(h.Ctx, "u1", text("one")); err == nil {
		t.Fatal("acknowledged without an answer")
	}
	if err := a.Settle(h.Ctx, "u1"); err != nil {
		t.Fatal(err)
	}
	if err := s.arrive(); err == nil {
		t.Error("it arrives after its claim was settled")
	}
	wantData(t, h, first, map[string]string{"epoch": "1 a"})
	if b := begin(t, h, "b"); strings.Join(b.found, " ") != "" {
		t.Error("found", b.found)
	}
}

// TestLateRemoval: an entry is over, its removal has no answer, and the claim is tried again with the very same request. Catches a record on which
// what is read as it should be counts as acknowledged: the removal arrives during the call, and who is killed then leaves a volume of which nobody knows.
func TestLateRemoval(t *testing.T) {
	h := kit.New(t)
	s := &slow{API: h.API}
	a := begin(t, h, "a", func(o *attempt.Options) { o.Client = s })
	put(t, h, a, "u1", text("one"))
	a.Remove("u1")
	s.holds = "patch"
	if err := a.Sweep(h.Ctx); err == nil {
		t.Fatal("taken off without an answer")
	}
	put(t, h, a, "u1", text("one"))
	if err := s.arrive(); err == nil {
		t.Error("it arrives after the entry was acknowledged")
	}
	wantData(t, h, first, map[string]string{"epoch": "1 a", "u1": "\none"})
	before := writes(h)
	put(t, h, a, "u1", text("one"))
	if writes(h) != before {
		t.Error("once is enough")
	}
}
