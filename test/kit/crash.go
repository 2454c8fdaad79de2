// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Scenario is a story that must end alike wherever the program dies in it.
type Scenario struct {
	// World puts the objects, the driver's script and the actors in place; it has no rooms yet.
	World func(h *Harness)
	// Program adds the rooms, made anew with the harness's API, Driver, Stores, Recorder and Clock. It
	// is called for every life of the program.
	Program func(h *Harness)
	// Users are things that happen one after another, each when all is quiet.
	Users []func(h *Harness)
	// Meanwhile happens while the program is down; without a cut it happens at the end.
	Meanwhile func(h *Harness)
	// Check must hold at the end of every run.
	Check func(t testing.TB, h *Harness)
	// Lag is how many turns the caches are behind.
	Lag int
}

// maxEffects bounds a scenario; one that needs more is not a unit.
const maxEffects = 500

// cut says where the program is disturbed: at the nth effect of one life.
type cut struct {
	nth  int
	when moment
}

// Crash runs a scenario undisturbed, and then again and again with a cut at each effect: the program ends
// before the effect is sent, or after it took effect but before the answer is seen, or it lives and the
// answer is lost. Every run must end in the same state, with the same things at the driver.
func Crash(t *testing.T, s Scenario) {
	t.Helper()
	want := undisturbed(t, s)
	for _, when := range []moment{beforeSent, afterDone, answerLost} {
		for nth := 1; ; nth++ {
			come := false
			t.Run(fmt.Sprintf("%v %d", when, nth), func(t *testing.T) { come = compare(t, s, want, cut{nth, when}) })
			if !come {
				break
			}
		}
	}
}

// CrashTwice is Crash with a second end in the life after the first: what cleans up must survive its own
// end. The number of runs grows with the square of the effects.
func CrashTwice(t *testing.T, s Scenario) {
	t.Helper()
	want := undisturbed(t, s)
	ends := []moment{beforeSent, afterDone}
	for first := 1; compare(t, s, want, cut{first, beforeSent}); first++ {
		t.Run(fmt.Sprintf("at %d and again", first), func(t *testing.T) {
			for _, when := range ends {
				for _, again := range ends {
					for second := 1; compare(t, s, want, cut{first, when}, cut{second, again}); second++ {
					}
				}
			}
		})
	}
}

func undisturbed(t *testing.T, s Scenario) []string {
	t.Helper()
	h := runScenario(t, s)
	switch n := h.Log.Effects(); {
	case n == 0:
		t.Fatal("the scenario has no effects: nothing can be cut")
	case n > maxEffects:
		t.Fatalf("the scenario has %d effects, more than %d", n, maxEffects)
	}
	return h.State()
}

// compare plays a run with cuts and tells whether all of them came.
func compare(t *testing.T, s Scenario, want []string, cuts ...cut) bool {
	t.Helper()
	h := runScenario(t, s, cuts...)
	if len(h.cuts) < len(cuts) {
		return false
	}
	if diff := cmp.Diff(want, h.State()); diff != "" {
		t.Errorf("cut at %q: the end differs (-undisturbed +cut):\n%s\neffects:\n%s\nturns:\n%s",
			h.cuts, diff, lastLines(h.Log.Lines(), 60), lastLines(h.trace, 60))
	}
	return true
}

// runScenario plays one run with these cuts, one in each life.
func runScenario(t testing.TB, s Scenario, cuts ...cut) *Harness {
	t.Helper()
	h := New(t)
	h.Lag(s.Lag)
	s.World(h)
	p := &play{Scenario: s, h: h, cuts: cuts}
	p.live()
	p.settle()
	for _, act := range s.Users {
		act(h)
		p.settle()
	}
	p.pause()
	p.settle()
	if s.Check != nil {
		s.Check(t, h)
	}
	return h
}

// play is a scenario under way.
type play struct {
	Scenario
	h      *Harness
	cuts   []cut
	paused bool
}

// live begins a life of the program, with the next cut in it.
func (p *play) live() {
	next := cut{}
	if len(p.cuts) > 0 {
		next, p.cuts = p.cuts[0], p.cuts[1:]
	}
	p.h.Log.cut(next.nth, next.when)
	p.Program(p.h)
}

// settle runs until all is quiet, through as many lives as that takes.
func (p *play) settle() {
	p.h.Settle()
	for p.h.HasEnded() {
		p.pause()
		p.note()
		p.h.Restart()
		p.live()
		p.h.Settle()
	}
	p.note()
}

// note keeps the cut that has come.
func (p *play) note() {
	if line := p.h.Log.takeCutLine(); line != "" {
		p.h.cuts = append(p.h.cuts, line)
	}
}

// pause is what happens while the program is down.
func (p *play) pause() {
	if p.Meanwhile != nil && !p.paused {
		p.paused = true
		p.Meanwhile(p.h)
	}
}
