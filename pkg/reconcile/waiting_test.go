// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"
	testclock "k8s.io/utils/clock/testing"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
)

// TestWaitingIsNoErrorInTheLog catches a queue that logs an error at each look at what only waits: whoever reads the log
// for errors then reads of nothing else. It is tried again with growing delays all the same.
func TestWaitingIsNoErrorInTheLog(t *testing.T) {
	for _, c := range []struct {
		err         error
		info, error int
	}{
		{fault.Waiting(errors.New("snapshot is not ready")), 1, 0},
		{fault.RetryAfter(fault.Waiting(errors.New("snapshot is not ready")), time.Second), 1, 0},
		{errors.New("no room"), 0, 1},
	} {
		clk := testclock.NewFakeClock(time.Unix(1000, 0))
		q := NewQueue(func(context.Context, Key) (Result, error) { return Result{}, c.err }, Options{Name: "q", RetryStart: time.Second, RetryMax: time.Minute, Clock: clk})
		var info, failed int
		ctx := klog.NewContext(t.Context(), funcr.New(func(_, line string) {
			switch {
			case strings.Contains(line, `"level"`):
				info++
			default:
				failed++
			}
		}, funcr.Options{Verbosity: 2}))
		q.begin()
		q.handleOne(ctx, key("a"))
		if info != c.info || failed != c.error {
			t.Errorf("%v: %d lines and %d errors", c.err, info, failed)
		}
		if w := q.Status().Work; len(w) != 1 || w[0].Failures != 1 || !w[0].Next.Equal(clk.Now().Add(time.Second)) {
			t.Errorf("%v: %+v", c.err, w)
		}
		q.queue.ShutDown()
	}
}
