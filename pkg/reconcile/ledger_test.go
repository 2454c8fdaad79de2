// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
)

// Steps as a machine has them.
type (
	wait   struct{}
	create struct{}
)

// noRoom is an error that knows what would help.
type noRoom struct{}

func (noRoom) Error() string  { return "no room" }
func (noRoom) Advice() string { return "make some" }

// ledgerQueue is a queue whose keys end as their names say; it is never run, keys are handled by hand.
func ledgerQueue(clk *testclock.FakeClock) *Queue {
	return NewQueue(func(ctx context.Context, k Key) (Result, error) {
		switch k.Name {
		case "fails":
			Chose(ctx, create{})
			return Result{}, noRoom{}
		case "stuck":
			return Result{}, fault.Terminal(errors.New("never"))
		case "conflict":
			return Result{}, apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("changed"))
		case "waits":
			Chose(ctx, wait{})
			return Result{Why: "its node"}, nil
		case "polls":
			Chose(ctx, wait{})
			return Result{After: time.Minute, Why: "the driver"}, nil
		}
		return Result{}, nil
	}, Options{Name: "q", Workers: 1, RetryStart: time.Second, RetryMax: time.Minute, Clock: clk})
}

func TestStatus(t *testing.T) {
	start := time.Unix(1000, 0)
	clk := testclock.NewFakeClock(start)
	q := ledgerQueue(clk)
	q.begin()
	defer q.queue.ShutDown()
	for _, name := range []string{"queued", "fails", "stuck", "conflict", "waits", "polls", "fine"} {
		q.Add(key(name))
		clk.Step(time.Second)
	}
	at := start.Add(7 * time.Second)
	for _, name := range []string{"fails", "stuck", "conflict", "waits", "polls", "fine"} {
		q.handleOne(t.Context(), key(name))
	}
	since := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	want := Status{
		Queue: "q", Queued: 7, // here nobody takes keys from the queue
		Work: []Work{
			{Key: key("queued"), Since: since(0)},
			{Key: key("fails"), Since: since(1), Next: at.Add(time.Second), Failures: 1, Step: create{}, Why: "no room; make some"},
			{Key: key("stuck"), Since: since(2), Failures: 1, Why: "never"},
			// Somebody else wrote first: that is no failure, and nobody is told.
			{Key: key("conflict"), Since: since(3), Next: at.Add(time.Second)},
			{Key: key("waits"), Since: since(4), Step: wait{}, Why: "its node"},
			{Key: key("polls"), Since: since(5), Next: at.Add(time.Minute), Step: wait{}, Why: "the driver"},
		},
		Failures: []Failure{{Key: key("stuck"), At: at, Why: "never"}, {Key: key("fails"), At: at, Step: "create", Why: "no room; make some"}},
	}
	if diff := cmp.Diff(want, q.Status(), cmpopts.IgnoreUnexported(Work{})); diff != "" {
		t.Error(diff)
	}
	// A failure that is over leaves no trace but among the last ones.
	clk.Step(time.Second)
	q.handleOne(t.Context(), key("fails"))
	if w := q.Status().Work[1]; w.Failures != 2 || w.Since != since(1) {
		t.Errorf("%+v", w)
	}
	q.ledger.done(key("fails"), Result{})
	if s := q.Status(); len(s.Work) != 5 || len(s.Failures) != 3 {
		t.Errorf("%+v", s)
	}
}

// TestInHand would catch a ledger that forgets a key which was asked for while it was in hand.
func TestInHand(t *testing.T) {
	clk := testclock.NewFakeClock(time.Unix(1000, 0))
	var q *Queue
	q = NewQueue(func(ctx context.Context, k Key) (Result, error) {
		Chose(ctx, create{})
		clk.Step(time.Second)
		if w := q.Status().Work[0]; w.Begun != time.Unix(1000, 0) || w.StepName() != "create" || !w.Next.IsZero() {
			t.Errorf("in hand: %+v", w)
		}
		q.Add(k)
		return Result{}, nil
	}, Options{Name: "q", Clock: clk})
	q.begin()
	defer q.queue.ShutDown()
	q.Add(key("a"))
	q.handleOne(t.Context(), key("a"))
	w := q.Status().Work
	if len(w) != 1 || w[0].Since != time.Unix(1001, 0) || !w[0].Begun.IsZero() || w[0].Step != nil {
		t.Errorf("%+v", w)
	}
}

func TestOnlyTheLastFailuresAreKept(t *testing.T) {
	l := newLedger(testclock.NewFakeClock(time.Unix(0, 0)))
	for n := range keptFailures + 5 {
		l.failed(key(fmt.Sprint(n)), errors.New("no"), time.Time{})
	}
	s := l.status("q")
	if len(s.Failures) != keptFailures || s.Failures[0].Key.Name != fmt.Sprint(keptFailures+4) {
		t.Errorf("%d, the newest %v", len(s.Failures), s.Failures[0])
	}
}

// TestManyQueuedKeysCostLittle: a hundred thousand keys at the start must not cost more than the queue itself.
func TestManyQueuedKeysCostLittle(t *testing.T) {
	q := ledgerQueue(testclock.NewFakeClock(time.Unix(0, 0)))
	q.begin()
	defer q.queue.ShutDown()
	for n := range keptQueued + 500 {
		q.Add(key(fmt.Sprintf("%06d", n)))
	}
	s := q.Status()
	if len(s.Work) != keptQueued || s.Queued != keptQueued+500 || s.Work[0].Key.Name != "000000" {
		t.Errorf("%d known of %d", len(s.Work), s.Queued)
	}
	q.handleOne(t.Context(), key("fails"))
	if len(q.Status().Work) != keptQueued+1 {
		t.Error("a key that was looked at is not known")
	}
}

// TestChoseOutsideOfAQueue: explanations go through the same code without one.
func TestChoseOutsideOfAQueue(t *testing.T) { Chose(t.Context(), wait{}) }

// A key that waits for a change of what does not exist any more would be shown as waiting for ever. Catches a ledger that only ever
// forgets what was looked at once more, and one that forgets what is still to be done.
func TestForgottenKeys(t *testing.T) {
	clk := testclock.NewFakeClock(time.Unix(1000, 0))
	q := ledgerQueue(clk)
	q.begin()
	defer q.queue.ShutDown()
	names := []string{"fails", "stuck", "conflict", "waits", "polls"}
	for _, name := range names {
		q.handleOne(t.Context(), key(name))
	}
	for _, name := range names {
		q.Forget(key(name))
	}
	q.ledger.begin(key("stuck"))
	q.Forget(key("stuck"))
	var left []string
	for _, w := range q.Status().Work {
		left = append(left, w.Key.Name)
	}
	if diff := cmp.Diff([]string{"conflict", "fails", "polls", "stuck"}, left); diff != "" {
		t.Error(diff)
	}
}
