// SPDX-License-Identifier: Apache-2.0

package attempt_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/csi-tandem/csi-tandem/pkg/attempt"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestTakenOver: once another process has begun, the one before it can write nothing any more, and knows. Catches a record without
// an epoch, on which two processes write for one driver.
func TestTakenOver(t *testing.T) {
	h := kit.New(t)
	a := begin(t, h, "a")
	put(t, h, a, "u1", text("one"))
	b := begin(t, h, "b")
	for what, err := range map[string]error{
		"put": a.Put(h.Ctx, "u2", text("two")), "check": a.Check(), "settle": a.Settle(h.Ctx, "u1"), "sweep": a.Sweep(h.Ctx), "begin": a.Begin(h.Ctx),
	} {
		if !errors.Is(err, attempt.ErrForeign) && what != "check" {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := a.Check(); !errors.Is(err, attempt.ErrForeign) {
		t.Error(err)
	}
	if len(b.found) != 1 || data(h, first)["u2"] != "" {
		t.Error(b.found, data(h, first))
	}
	put(t, h, b, "u3", text("three"))
}

// TestTakenOverOnTheWay: whatever the moment at which another process begins, an entry that was acknowledged is one that it has
// read. Catches an acknowledgement that compares epochs before the write instead of with it, and a new object that the other has
// looked for in vain.
func TestTakenOverOnTheWay(t *testing.T) {
	small := func(o *attempt.Options) { o.ShardBytes = 60 }
	for name, rule := range map[string]kit.Rule{
		"while an entry is written":     {Verb: "patch"},
		"while an object is made":       {Verb: "create"},
		"after an object was made":      {Verb: "get"},
		"while an answer is being lost": {Verb: "patch", Err: late, Done: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := kit.New(t)
			a := begin(t, h, "a", small)
			put(t, h, a, "u1", text(strings.Repeat("1", 30)))
			var b *process
			rule.Resource, rule.Times = configMaps, 1
			rule.Meanwhile = func() { b = begin(t, h, "b", small) }
			h.API.Script(rule)
			if rule.Verb == "patch" {
				_ = a.Put(h.Ctx, "u2", text("2"))
			}
			err := a.Put(h.Ctx, "u3", text(strings.Repeat("3", 30))) // needs an object of its own
			for range 3 {
				if err != nil {
					err = a.Put(h.Ctx, "u3", text(strings.Repeat("3", 30)))
				}
			}
			if b == nil {
				t.Fatal("the other never began")
			}
			if !errors.Is(err, attempt.ErrForeign) {
				t.Errorf("%v; the other found %v", err, b.found)
			}
		})
	}
}

// TestBothBegin: of two that begin at the same time one has the record.
func TestBothBegin(t *testing.T) {
	for _, verb := range []string{"create", "patch"} {
		h := kit.New(t)
		if verb == "patch" {
			begin(t, h, "old")
		}
		var b *process
		h.API.Script(kit.Rule{Verb: verb, Resource: configMaps, Times: 1, Meanwhile: func() { b = begin(t, h, "b") }})
		a := begin(t, h, "a")
		put(t, h, a, "u1", text("one"))
		if err := b.Put(h.Ctx, "u2", text("two")); !errors.Is(err, attempt.ErrForeign) {
			t.Errorf("%s: %v", verb, err)
		}
	}
}
