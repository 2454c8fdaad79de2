// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// A key comes to wait in one lane, and its lane is another one by the time that the Add that brought it there looks. Catches a key that is taken out of
// the one and forgotten.
func TestKeyIsForgottenWhenItsLaneChanges(t *testing.T) {
	hold := make(chan struct{})
	handled := make(chan string, 10)
	var asked atomic.Int32
	q := NewQueue(func(_ context.Context, k Key) (Result, error) {
		if k.Name == "blocker" {
			<-hold
		}
		handled <- k.Name
		return Result{}, nil
	}, Options{Name: "q", Workers: 1, RetryStart: time.Second, RetryMax: time.Minute, Clock: clock.RealClock{}, Lane: func(k Key) string {
		if k.Name == "victim" && asked.Add(1) > 1 {
			return "b"
		}
		return "a"
	}})
	stop := start(t, q)
	defer stop()
	q.Add(key("blocker"))
	for q.Len() > 0 {
		time.Sleep(time.Millisecond)
	}
	// What Add does, with the other goroutine running in between.
	q.ledger.asked(key("victim"))
	q.queue.Add(key("victim"))
	for asked.Load() == 0 || q.Len() != 1 || q.queue.Len() != 0 {
		time.Sleep(time.Millisecond)
	}
	q.changeLane(key("victim"))
	close(hold)
	<-handled
	select {
	case <-handled:
	case <-time.After(2 * time.Second):
		t.Error("the key is never handled")
	}
}
