// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
)

// TestErrorsAreKeptInPart: what is remembered of failing keys stays small, whatever the errors are like. Catches a ledger that
// keeps each error whole.
func TestErrorsAreKeptInPart(t *testing.T) {
	clk := testclock.NewFakeClock(time.Unix(1000, 0))
	q := NewQueue(func(context.Context, Key) (Result, error) {
		return Result{}, errors.New("refused: " + strings.Repeat("x", 1<<20))
	}, Options{Name: "q", Workers: 1, RetryStart: time.Second, RetryMax: time.Minute, Clock: clk})
	q.begin()
	defer q.queue.ShutDown()
	q.Add(key("fails"))
	q.handleOne(t.Context(), key("fails"))
	status := q.Status()
	if len(status.Work) != 1 || len(status.Failures) != 1 {
		t.Fatalf("got %d keys and %d failures", len(status.Work), len(status.Failures))
	}
	for _, why := range []string{status.Work[0].Why, status.Failures[0].Why} {
		if !strings.HasPrefix(why, "refused: ") || len(why) > 2100 {
			t.Errorf("%d bytes are kept", len(why))
		}
	}
}
