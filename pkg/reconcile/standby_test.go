// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/utils/clock"
)

// TestStandbyKeepsFewKeys: who stands by hears of everything, for weeks, begins with all there is, and hears what comes then. Catches a
// queue that grows by each object that ever was, and one that has forgotten those that are there when the lead comes.
func TestStandbyKeepsFewKeys(t *testing.T) {
	handled := make(chan string)
	q := NewQueue(func(_ context.Context, k Key) (Result, error) { handled <- k.Name; return Result{}, nil }, Options{
		Name: "q", Workers: 1, RetryStart: time.Second, RetryMax: time.Minute, Clock: clock.RealClock{},
		All: func() []Key { return []Key{key("there")} },
	})
	for i := range 3 * keptEarly {
		q.Hear([]Key{key(fmt.Sprint("gone-", i))})
	}
	if n := q.Len(); n != keptEarly {
		t.Errorf("%d keys are kept by who stands by", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- q.Run(ctx) }()
	seen := map[string]bool{<-handled: true} // so that the work has begun
	q.Hear([]Key{key("new")})
	for !seen["there"] || !seen["new"] {
		seen[<-handled] = true
	}
	cancel()
	for {
		select {
		case <-handled:
		case <-done:
			return
		}
	}
}

// TestStartLooksAtNothingTwice: who has just started begins with what the first lists told, and asks the caches for no more. Catches a
// start that unpacks all that they hold once more.
func TestStartLooksAtNothingTwice(t *testing.T) {
	handled := make(chan string, 1)
	q := NewQueue(func(_ context.Context, k Key) (Result, error) { handled <- k.Name; return Result{}, nil }, Options{
		Name: "q", Workers: 1, RetryStart: time.Second, RetryMax: time.Minute, Clock: clock.RealClock{},
		All: func() []Key { t.Error("the caches are asked for all"); return nil },
	})
	q.Hear([]Key{key("listed")})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- q.Run(ctx) }()
	if name := <-handled; name != "listed" {
		t.Errorf("the work begins with %s", name)
	}
	cancel()
	<-done
}

// TestQueueThatNeverRuns: a process that stands by may set up anew many times before it leads. Catches a queue that leaves goroutines behind each time.
func TestQueueThatNeverRuns(t *testing.T) {
	before := goleak.IgnoreCurrent()
	q := NewQueue(func(context.Context, Key) (Result, error) { return Result{}, nil }, Options{Name: "q"})
	q.Hear([]Key{key("a"), key("b"), key("a")})
	q.Add(key("b"))
	if q.Len() != 2 {
		t.Error(q.Len(), "keys are kept")
	}
	goleak.VerifyNone(t, before)
}

// TestNothingIsLeftInTheQueue: what waits when the lead ends is the next term's, which has a queue of its own under the same name. Catches a gauge
// workqueue_depth that counts it for as long as the process runs.
func TestNothingIsLeftInTheQueue(t *testing.T) {
	q := NewQueue(func(context.Context, Key) (Result, error) { return Result{}, nil }, Options{Name: "q"})
	q.Hear([]Key{key("a"), key("b"), key("c")})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := q.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if n := q.queue.Len(); n != 0 {
		t.Error(n, "keys are left")
	}
}
