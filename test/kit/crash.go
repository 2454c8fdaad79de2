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

// Crash runs a scenario undisturbed, and then again and again with a cut at each effect: the program ends
// before the effect is sent, or after it took effect but before the answer is seen, or it lives and the
// answer is lost. Every run must end in the same state, with the same things at the driver.
func Crash(t *testing.T, s Scenario) {
	t.Helper()
	whole := runScenario(t, s, 0, never)
	want := whole.State()
	if whole.Log.Effects() == 0 {
		t.Fatal("the scenario has no effects: nothing can be cut")
	}
	for _, when := range []moment{beforeSent, afterDone, answerLost} {
		for nth := 1; nth <= maxEffects; nth++ {
			come := false
			t.Run(fmt.Sprintf("%v %d", when, nth), func(t *testing.T) {
				h := runScenario(t, s, nth, when)
				if come = h.Log.cutAtLine() != ""; !come {
					return
				}
				if diff := cmp.Diff(want, h.State()); diff != "" {
					t.Errorf("cut at %q: the end differs (-undisturbed +cut):\n%s\neffects:\n%s",
						h.Log.cutAtLine(), diff, lastLines(h.Log.Lines(), 60))
				}
			})
			if !come {
				break
			}
			if nth == maxEffects {
				t.Fatalf("more than %d effects", maxEffects)
			}
		}
	}
}

// runScenario plays one run with at most one cut.
func runScenario(t testing.TB, s Scenario, nth int, when moment) *Harness {
	t.Helper()
	h := New(t)
	h.Lag(s.Lag)
	s.World(h)
	h.Log.cut(nth, when)
	s.Program(h)
	h.Settle()
	happened := false
	survive := func() {
		if !h.HasEnded() {
			return
		}
		if s.Meanwhile != nil {
			s.Meanwhile(h)
			happened = true
		}
		h.Restart()
		s.Program(h)
		h.Settle()
	}
	survive()
	for _, act := range s.Users {
		act(h)
		h.Settle()
		survive()
	}
	if s.Meanwhile != nil && !happened {
		s.Meanwhile(h)
		h.Settle()
		survive()
	}
	if s.Check != nil {
		s.Check(t, h)
	}
	return h
}
