// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	testclock "k8s.io/utils/clock/testing"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs a queue and returns a function that ends it and waits.
func start(t *testing.T, q *Queue) func() {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = q.Run(ctx) }()
	return func() { cancel(); <-done }
}

func key(name string) Key { return Key{Namespace: "ns", Name: name} }

func TestFullLaneDoesNotHoldUpAnother(t *testing.T) {
	release, deleted := make(chan struct{}), make(chan struct{})
	q := NewQueue(func(_ context.Context, k Key) (Result, error) {
		if k.Namespace == "delete" {
			close(deleted)
			return Result{}, nil
		}
		<-release
		return Result{}, nil
	}, Options{Name: "lanes", Workers: 2, Lane: func(k Key) string { return k.Namespace }})
	for _, name := range []string{"a", "b", "c", "d"} {
		q.Add(Key{Namespace: "create", Name: name})
	}
	q.Add(Key{Namespace: "delete", Name: "x"})
	stop := start(t, q)
	<-deleted // hangs when creates can starve deletes
	close(release)
	stop()
}

// TestLanesGoWithTheirWork: what lanes are called can come from whoever makes objects, as the class of a claim does. Catches a queue that
// keeps a lane for each name that it ever heard, and one that drops it while something waits there.
func TestLanesGoWithTheirWork(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	q := NewQueue(func(context.Context, Key) (Result, error) {
		begun <- struct{}{}
		<-release
		return Result{}, nil
	}, Options{Name: "names", Workers: 1, Lane: func(k Key) string { return k.Namespace }})
	stop := start(t, q)
	for i := range 50 {
		lane := fmt.Sprint("class-", i)
		for _, name := range []string{"a", "b", "c"} {
			q.Add(Key{Namespace: lane, Name: name})
		}
		for range 3 {
			<-begun
			select {
			case <-begun:
				t.Fatalf("two run in lane %s, which has one worker", lane)
			default:
			}
			release <- struct{}{}
		}
	}
	stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.lanes); n != 0 {
		t.Errorf("nothing is left to do, and %d lanes are kept", n)
	}
}

// A key that has failed and can go on must not wait behind those that wait for what it holds.
func TestRetriesHaveWorkersOfTheirOwn(t *testing.T) {
	release := make(chan struct{})
	var tries atomic.Int32
	q := NewQueue(func(_ context.Context, k Key) (Result, error) {
		if k.Name != "first" {
			<-release
			return Result{}, nil
		}
		if tries.Add(1) == 1 {
			return Result{}, fault.RetryAfter(errors.New("no"), time.Millisecond)
		}
		close(release)
		return Result{}, nil
	}, Options{Name: "apart", Workers: 1, RetriesApart: true})
	q.Add(key("first"))
	q.Add(key("second"))
	q.Add(key("third"))
	stop := start(t, q)
	<-release // hangs when those that wait hold the only worker
	stop()
}

func TestOneKeyIsNeverHandledTwiceAtOnce(t *testing.T) {
	var running, worst, runs atomic.Int32
	q := NewQueue(func(context.Context, Key) (Result, error) {
		worst.Store(max(worst.Load(), running.Add(1)))
		defer running.Add(-1)
		time.Sleep(time.Millisecond)
		runs.Add(1)
		return Result{}, nil
	}, Options{Name: "single", Workers: 8, Lane: func(Key) string { return string(rune('a' + runs.Load()%3)) }})
	stop := start(t, q)
	for range 50 {
		q.Add(key("same"))
		time.Sleep(time.Millisecond / 2)
	}
	stop()
	if worst.Load() != 1 || runs.Load() < 2 {
		t.Errorf("%d at once in %d runs", worst.Load(), runs.Load())
	}
}

func TestRetries(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		step time.Duration
		want int32
	}{
		"a failure is tried again":         {errors.New("no"), time.Second, 2},
		"but not before its time":          {errors.New("no"), time.Second / 2, 1},
		"a terminal one is not":            {fault.Terminal(errors.New("no")), time.Hour, 1},
		"one that asks for a time gets it": {fault.RetryAfter(errors.New("no"), time.Minute), time.Minute, 2},
		"and not the usual one":            {fault.RetryAfter(errors.New("no"), time.Minute), time.Second, 1},
		"success is the end":               {nil, time.Hour, 1},
	} {
		t.Run(name, func(t *testing.T) {
			clk := testclock.NewFakeClock(time.Unix(0, 0))
			var runs atomic.Int32
			ran := make(chan struct{}, 10)
			q := NewQueue(func(context.Context, Key) (Result, error) {
				runs.Add(1)
				ran <- struct{}{}
				return Result{}, c.err
			}, Options{Name: "retry", Workers: 1, RetryStart: time.Second, RetryMax: time.Minute, Clock: clk})
			stop := start(t, q)
			q.Add(key("a"))
			<-ran
			again := steppedInto(clk, c.step, ran, c.want == 2)
			stop()
			if again != (c.want == 2) {
				t.Errorf("%d runs, want %d", runs.Load(), c.want)
			}
		})
	}
}

func TestEndGivesGraceThenCancels(t *testing.T) {
	var once sync.Once
	started := make(chan struct{})
	q := NewQueue(func(ctx context.Context, _ Key) (Result, error) {
		once.Do(func() { close(started) })
		<-ctx.Done() // a call that never answers
		return Result{}, ctx.Err()
	}, Options{Name: "grace", Workers: 1, Grace: 10 * time.Millisecond})
	q.Add(key("hangs"))
	q.Add(key("never begun"))
	stop := start(t, q)
	<-started
	stop() // hangs when the key in hand is not cancelled
}

// Who has lost the right to work must not use the grace of who leaves. Hangs where the cause is ignored.
func TestEndWithoutGraceCancelsAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	q := NewQueue(func(work context.Context, _ Key) (Result, error) {
		cancel(fmt.Errorf("lost: %w", ErrNoGrace))
		<-work.Done()
		return Result{}, work.Err()
	}, Options{Name: "graceless", Workers: 1, Grace: time.Hour})
	q.Add(key("hangs"))
	if err := q.Run(ctx); err != nil {
		t.Error(err)
	}
}

// steppedInto moves the clock and tells whether another run came. When one is expected the clock moves
// until it comes, since the retry may be put on the clock a moment after the run that asked for it.
func steppedInto(clk *testclock.FakeClock, step time.Duration, ran <-chan struct{}, expected bool) bool {
	for {
		clk.Step(step)
		select {
		case <-ran:
			return true
		case <-time.After(20 * time.Millisecond):
			if !expected {
				return false
			}
		}
	}
}

// TestKeyThatChangesItsLane: what waits among many for a driver that hangs, and is deleted meanwhile, waits no more with them. Catches a queue that sorts a
// key once, so that deletions are held up by what is made.
func TestKeyThatChangesItsLane(t *testing.T) {
	var deleted sync.Map
	hangs, release, looked := make(chan struct{}, 1), make(chan struct{}), make(chan Key, 3)
	q := NewQueue(func(_ context.Context, k Key) (Result, error) {
		if _, isDeleted := deleted.Load(k); !isDeleted {
			hangs <- struct{}{}
			<-release
		}
		looked <- k
		return Result{}, nil
	}, Options{Name: "changes", Workers: 1, Lane: func(k Key) string {
		if _, isDeleted := deleted.Load(k); isDeleted {
			return "delete"
		}
		return "create"
	}})
	stop := start(t, q)
	q.Add(key("a"))
	<-hangs
	q.Add(key("b"))
	q.Add(key("c"))
	for q.queue.Len() > 0 {
		time.Sleep(time.Millisecond)
	}
	for end := time.Now().Add(10 * time.Second); q.Len() < 2 && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	deleted.Store(key("c"), true)
	q.Add(key("c"))
	select {
	case k := <-looked:
		if k != key("c") {
			t.Error("looked at", k)
		}
	case <-time.After(10 * time.Second):
		t.Error("it waits behind what hangs")
	}
	close(release)
	<-hangs // b has its turn all the same
	for range 2 {
		<-looked
	}
	stop()
	if len(q.waits) != 0 || len(q.lanes) != 0 {
		t.Errorf("left over: %v %v", q.waits, q.lanes)
	}
}
