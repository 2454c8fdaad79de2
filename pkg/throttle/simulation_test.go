// SPDX-License-Identifier: Apache-2.0

package throttle_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/csi-tandem/csi-tandem/pkg/throttle"
)

// (B045) Without the limit, and with repeats by a doubling delay, hundreds of calls are answered Aborted; with a limit that every deadline
// halves, one volume is made at a time, which takes four times as long.
func TestWorkBeyondTheDeadline(t *testing.T) {
	for _, c := range []struct {
		name    string
		slots   int
		work    time.Duration
		pick    func(int) int
		slack   float64
		aborted int
	}{
		{"B045 four at a time, 20 s each", 4, 20 * time.Second, nil, 1.3, 50},
		{"B045 one at a time", 1, 20 * time.Second, nil, 1.3, 50},
		{"B045 sixteen at a time", 16, 20 * time.Second, nil, 1.5, 50},
		{"B045 the last first", 4, 20 * time.Second, func(n int) int { return n - 1 }, 1.6, 100},
		{"B045 in no order", 4, 20 * time.Second, func(n int) int { return (n * 7919) % 31 % n }, 1.6, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStubborn(c.slots, c.work)
			if c.pick != nil {
				s.line.pick = c.pick
			}
			m := &model{deadline: 15 * time.Second, make: s.make}
			took := simulate(t, m, throttle.Options{}, claims("a", 100), everyOne)
			best := 100 * c.work / time.Duration(c.slots)
			if float64(took) > c.slack*float64(best) {
				t.Errorf("took %v, more than %.1f times %v", took, c.slack, best)
			}
			if m.aborted > c.aborted {
				t.Errorf("%d calls were answered Aborted, more than %d", m.aborted, c.aborted)
			}
		})
	}
}

// rated is a driver whose back end takes so many requests in a second, of which a volume needs three; what
// it has done for a call is lost with the call.
func rated(every time.Duration) func(ctx context.Context, name string) error {
	back := newLine(1)
	return func(ctx context.Context, _ string) error {
		for range 3 {
			back.enter()
			if ctx.Err() != nil {
				back.leave()
				return errLate
			}
			time.Sleep(every)
			back.leave()
		}
		if ctx.Err() != nil {
			return errLate
		}
		return nil
	}
}

// (B045) Whoever sends as many calls as there are workers makes all of them wait until all of them are
// too late, and never gets a volume.
func TestRateOfTheBackEnd(t *testing.T) {
	for _, c := range []struct {
		name     string
		n        int
		deadline time.Duration
		options  throttle.Options
		slack    float64
	}{
		{"B045 two requests a second, three for a volume", 300, 150 * time.Second, throttle.Options{}, 1.05},
		{"B045 with a short deadline", 300, 15 * time.Second, throttle.Options{}, 1.5},
		{"B045 with a deadline for one at a time", 40, 2 * time.Second, throttle.Options{}, 3},
		{"B045 by a fixed limit", 300, 150 * time.Second, throttle.Options{Fixed: 4}, 1.05},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &model{deadline: c.deadline, make: rated(500 * time.Millisecond)}
			took := simulate(t, m, c.options, claims("a", c.n), everyOne)
			if best := time.Duration(c.n) * 1500 * time.Millisecond; float64(took) > c.slack*float64(best) {
				t.Errorf("took %v, more than %.2f times %v", took, c.slack, best)
			}
			if c.options.Fixed > 0 && m.peak > c.options.Fixed {
				t.Errorf("%d calls at once, and %d are allowed", m.peak, c.options.Fixed)
			}
		})
	}
}

// What can be done at once is done at once: a limit that stays low would cost the users of fast drivers.
func TestFastDriverIsNotHeldBack(t *testing.T) {
	for _, c := range []struct {
		name  string
		work  time.Duration
		limit time.Duration
		peak  int
	}{
		{"without latency", 0, 0, 1},
		{"5 ms for each", 5 * time.Millisecond, 75 * time.Millisecond, 100},
		{"3 s for each", 3 * time.Second, 45 * time.Second, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &model{deadline: 15 * time.Second, make: func(context.Context, string) error {
				time.Sleep(c.work)
				return nil
			}}
			took := simulate(t, m, throttle.Options{}, claims("a", 1000), everyOne)
			if took > c.limit || m.peak < c.peak || m.peak > 100 {
				t.Errorf("took %v with %d at once, want at most %v with %d", took, m.peak, c.limit, c.peak)
			}
		})
	}
}

// A class whose calls hang must leave the others their pace; so must single objects that hang.
func TestWhatHangsHoldsUpNoOthers(t *testing.T) {
	hang := func(ctx context.Context) error { <-ctx.Done(); return errLate }
	isBad := func(name string) bool { return strings.HasPrefix(name, "bad") || strings.HasSuffix(name, "7") }
	for _, c := range []struct {
		name  string
		all   []claim
		most  int
		limit time.Duration
	}{
		// Alone, the good ones take 50 s.
		{"B045 a class", append(claims("bad", 300), claims("good", 200)...), 100, 80 * time.Second},
		{"B045 three classes", append(append(append(claims("bad1", 100), claims("bad2", 100)...), claims("bad3", 100)...), claims("good", 200)...), 100, 90 * time.Second},
		{"B045 with few workers", append(claims("bad", 300), claims("good", 200)...), 10, 150 * time.Second},
		{"B045 one object in ten", claims("good", 200), 100, 120 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStubborn(4, time.Second)
			m := &model{deadline: 15 * time.Second, make: func(ctx context.Context, name string) error {
				if isBad(name) {
					return hang(ctx)
				}
				return s.make(ctx, name)
			}}
			took := simulate(t, m, throttle.Options{Most: c.most}, c.all, func(c claim) bool { return !isBad(c.name) })
			if took > c.limit {
				t.Errorf("took %v, more than %v", took, c.limit)
			}
		})
	}
}

// Drivers that are not as they should be must get their work done all the same.
func TestOddDrivers(t *testing.T) {
	t.Run("B045 one operation at a time, whatever the object", func(t *testing.T) {
		busy := make(chan struct{}, 1)
		m := &model{deadline: 15 * time.Second, make: func(context.Context, string) error {
			select {
			case busy <- struct{}{}:
			default:
				return errAborted
			}
			time.Sleep(time.Second)
			<-busy
			return nil
		}}
		if took := simulate(t, m, throttle.Options{}, claims("a", 50), everyOne); took > 150*time.Second {
			t.Errorf("took %v for what takes 50 s", took)
		}
	})
	t.Run("B045 a repeat waits for the work that goes on", func(t *testing.T) {
		s := newStubborn(8, 100*time.Second)
		m := &model{deadline: 15 * time.Second}
		m.make = func(ctx context.Context, name string) error {
			err := s.make(ctx, name)
			for err == errAborted {
				time.Sleep(time.Second)
				if ctx.Err() != nil {
					return errLate
				}
				err = s.make(ctx, name)
			}
			return err
		}
		// Who gets a place next is chance, and one claim that comes last runs alone: of 150 runs one took 1,560 s. Two places would take 3,200 s.
		if took := simulate(t, m, throttle.Options{}, claims("a", 64), everyOne); took > 2400*time.Second {
			t.Errorf("took %v for what takes 800 s", took)
		}
	})
	t.Run("B045 an object that is said to be worked on for ever", func(t *testing.T) {
		s := newStubborn(4, time.Second)
		isStuck := func(name string) bool { return strings.HasSuffix(name, "7") }
		m := &model{deadline: 15 * time.Second, make: func(ctx context.Context, name string) error {
			if isStuck(name) {
				return errAborted
			}
			return s.make(ctx, name)
		}}
		took := simulate(t, m, throttle.Options{}, claims("a", 100), func(c claim) bool { return !isStuck(c.name) })
		if took > 60*time.Second {
			t.Errorf("took %v for what takes 25 s", took)
		}
	})
}
