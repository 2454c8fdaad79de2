// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"strings"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
)

// TestPanicIsOneObjectsFailure: one object that the program cannot bear stops nobody else's, and is tried again. Catches a queue that
// takes the process down with it, again at every start.
func TestPanicIsOneObjectsFailure(t *testing.T) {
	fine := 0
	q := NewQueue(func(_ context.Context, k Key) (Result, error) {
		if k.Name == "bad" {
			var none *Result
			none.After = time.Second
		}
		fine++
		return Result{}, nil
	}, Options{Name: "q", Workers: 1, RetryStart: time.Second, RetryMax: time.Minute, Clock: testclock.NewFakeClock(time.Unix(1000, 0))})
	q.begin()
	defer q.queue.ShutDown()
	for _, name := range []string{"bad", "good", "bad"} {
		q.handleOne(t.Context(), key(name))
	}
	work := q.Status().Work
	if fine != 1 || len(work) != 1 || work[0].Failures != 2 || work[0].Next.IsZero() || !strings.Contains(work[0].Why, "nil pointer") {
		t.Errorf("%d others were worked on; %+v", fine, work)
	}
}
