// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/csi-tandem/csi-tandem/test/proxy"
	"github.com/csi-tandem/csi-tandem/test/stage"
)

// pace is how often a round looks: often, since most of its time is waiting.
const pace = 25 * time.Millisecond

// calm is how long nothing has to happen before the first life of a kind counts as over.
const calm = 500 * time.Millisecond

// job is a round to be played: what happens, and around which effect it is disturbed.
type job struct {
	scenario *scenario
	effect   int
	when     proxy.When
	how      how
}

func (j job) String() string {
	return fmt.Sprintf("%s: %s around effect %d, %s", j.scenario.name, j.how, j.effect, j.when)
}

// round is a job at work, with a crew that has rested.
type round struct {
	*crew
	job
	name string
	// struck is the effect that was cut, if it was reached.
	struck *proxy.Effect
	// ended waits for what was asked to end.
	ended func() error
}

// undisturbed plays a life and returns how it ends and how many effects that took.
func (c *crew) undisturbed(ctx context.Context, s *scenario, name string) (end string, effects []proxy.Effect, err error) {
	if err := c.prepared(ctx, s, name); err != nil {
		return "", nil, err
	}
	c.counter.Reset()
	if err := s.act(ctx, c, name); err != nil {
		return "", nil, err
	}
	if err := c.awaitCalm(ctx, s.name+" is over", calm); err != nil {
		return "", nil, err
	}
	effects = c.counter.Effects()
	v, err := c.look(ctx)
	if err != nil {
		return "", nil, err
	}
	end, err = c.portrait(v, name)
	return end, effects, err
}

// awaitCalm waits until all is as it should be and nothing happens any more.
func (c *crew) awaitCalm(ctx context.Context, what string, quiet time.Duration) error {
	return await(ctx, what, pace, func() (bool, string) {
		v, err := c.look(ctx)
		if err != nil {
			return unreadable(err)
		}
		if faults := v.faults(); len(faults) > 0 {
			return false, fmt.Sprintf("%q", faults)
		}
		return c.isQuiet(ctx, quiet), "there are still effects"
	})
}

func (c *crew) prepared(ctx context.Context, s *scenario, name string) error {
	if s.prepare == nil {
		return nil
	}
	if err := s.prepare(ctx, c, name); err != nil {
		return err
	}
	if s.name == "import" {
		return nil // Nobody but the driver knows of it yet.
	}
	return c.awaitCalm(ctx, "what is needed first is there", 4*pace)
}

// play disturbs a life at one effect, and compares its end with that of a life that nobody disturbed.
func (r *round) play(ctx context.Context, end, resting string) error {
	if err := r.prepared(ctx, r.scenario, r.name); err != nil {
		return err
	}
	r.clearJournals()
	r.counter.Reset()
	defer func() { _ = r.awaitEnded() }() // Only where another error is returned.
	struck := r.counter.CutAt(r.effect, r.when, r.strike)
	if err := r.scenario.act(ctx, r.crew, r.name); err != nil {
		return err
	}
	if r.how == absent {
		if err := r.undoWhileAway(ctx, struck); err != nil {
			return err
		}
		return r.awaitRest(ctx, resting)
	}
	if err := r.await(ctx, struck, end); err != nil {
		return err
	}
	if r.scenario.undo == nil {
		return nil
	}
	if err := r.checkNothingDeleted(); err != nil {
		return err
	}
	if err := r.scenario.undo(ctx, r.crew, r.name); err != nil {
		return err
	}
	return r.awaitPortrait(ctx, resting)
}

// strike is called while nobody else's effect is let through.
func (r *round) strike(e proxy.Effect) {
	r.struck = &e
	victim := r.sidecars[stage.Program(e.Client)]
	switch r.how {
	case kill:
		victim.Kill()
	case absent:
		for _, p := range r.sidecars {
			p.Kill()
		}
	case term:
		wait := victim.BeginTermination()
		r.ended = func() error {
			if state := wait(); state.ExitCode() != 0 {
				return fmt.Errorf("the %s was asked to end, and ended with %v", victim.Name, state)
			}
			return nil
		}
	}
}

// awaitEnded is for a round that fails while somebody is ending.
func (r *round) awaitEnded() error {
	if r.ended == nil {
		return nil
	}
	wait := r.ended
	r.ended = nil
	return wait()
}

// await waits for the end of a life, and starts again whoever was ended before.
func (r *round) await(ctx context.Context, struck <-chan proxy.Effect, end string) error {
	for deadline := time.Now().Add(patience); ; {
		select {
		case <-struck:
			if err := r.restart(); err != nil {
				return err
			}
			return r.awaitPortrait(ctx, end)
		default:
		}
		isOver, why := r.looksLike(ctx, end)
		if isOver && r.isMissed(ctx) {
			return nil
		}
		if time.Now().After(deadline) || !rest(ctx, pace) {
			return fmt.Errorf("no cut, and no end either: %s", why)
		}
	}
}

// isMissed says of a life that seems to be over that it had fewer effects this time, and sees to it that the cut comes no more.
func (r *round) isMissed(ctx context.Context) bool {
	if !r.isQuiet(ctx, 4*pace) || r.counter.Count() >= r.effect {
		return false // It is being cut right now.
	}
	r.counter.Reset()
	return true
}

func (r *round) restart() error {
	failures := []error{r.awaitEnded()}
	for _, p := range r.sidecars {
		failures = append(failures, p.Start())
	}
	return errors.Join(failures...)
}

// undoWhileAway deletes the object when both are dead, or when its life is over without that.
func (r *round) undoWhileAway(ctx context.Context, struck <-chan proxy.Effect) error {
	err := await(ctx, "the cut is reached", pace, func() (bool, string) {
		select {
		case <-struck:
			return true, ""
		default:
		}
		v, err := r.look(ctx)
		if err != nil {
			return unreadable(err)
		}
		return len(v.faults()) == 0 && r.isMissed(ctx), "neither a cut nor an end"
	})
	if err != nil {
		return err
	}
	if err := r.scenario.undo(ctx, r.crew, r.name); err != nil {
		return err
	}
	return r.restart()
}

func (r *round) awaitPortrait(ctx context.Context, want string) error {
	return await(ctx, "all is as it would be without a disturbance", pace, func() (bool, string) { return r.looksLike(ctx, want) })
}

// awaitRest is for an end that also looks like the moment before anybody has begun: what is on record of a call may first be made, to
// know that there is something to delete.
func (r *round) awaitRest(ctx context.Context, want string) error {
	return await(ctx, "all is as if it had never been, and stays so", pace, func() (bool, string) {
		for _, program := range programs {
			if _, err := r.page(ctx, program, "/readyz"); err != nil {
				return unreadable(err)
			}
		}
		if isThere, why := r.looksLike(ctx, want); !isThere {
			return false, why
		}
		if !r.isQuiet(ctx, calm) {
			return false, "there are still effects"
		}
		return r.looksLike(ctx, want)
	})
}

func (r *round) looksLike(ctx context.Context, want string) (bool, string) {
	v, err := r.look(ctx)
	if err != nil {
		return unreadable(err)
	}
	got, err := r.portrait(v, r.name)
	if err != nil {
		return unreadable(err)
	}
	return got == want, cmp.Diff(want, got)
}

// checkNothingDeleted: a life in which nobody deletes anything has no deletions at the driver (A6).
func (r *round) checkNothingDeleted() error {
	for _, method := range []string{"DeleteVolume", "DeleteSnapshot"} {
		if calls := r.calls(method); len(calls) > 0 {
			return fmt.Errorf("A6: %s was called for %s, and nobody has deleted anything", method, calls[0].Name)
		}
	}
	return nil
}
