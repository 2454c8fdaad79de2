// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"testing"
	"time"

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
