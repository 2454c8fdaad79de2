// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/trace"
)

// keptQueued is how many keys are known before somebody has looked at them. At the start of a large cluster there are
// very many, and those that were asked for first are among the known ones.
const keptQueued = 1000

// keptFailures is how many of the last failures are shown; older ones are in the logs.
const keptFailures = 20

// keptWhy is how many bytes of an error are kept for each key: an API server, or a webhook, may answer with much more, and to
// very many keys at once.
const keptWhy = 2 << 10

// Work is a key that is not finished with: it waits for a worker, is in hand, waits for its next try, or waits
// for something to change.
type Work struct {
	Key Key
	// Since is when this process began to have to do with it.
	Since time.Time
	// Begun is when the look that goes on now began; zero when none does.
	Begun time.Time
	// Next is when it is looked at again if nothing changes before; zero when nobody knows.
	Next time.Time
	// Failures are those in a row.
	Failures int
	// Step is what was last decided, a value of one of the machines' types, or nil.
	Step any
	// Why is the last error, or what is being waited for.
	Why string

	// again is when the key was asked for while it was in hand.
	again time.Time
}

// StepName is the name of the step's type, which is one of a few.
func (w Work) StepName() string { return stepName(w.Step) }

func stepName(step any) string {
	if step == nil {
		return ""
	}
	name := fmt.Sprintf("%T", step)
	return name[strings.LastIndexByte(name, '.')+1:]
}

// Failure is something that went wrong.
type Failure struct {
	Key  Key
	At   time.Time
	Step string
	Why  string
}

// Status is what a queue has to do.
type Status struct {
	Queue string
	// Work is sorted, what is oldest first.
	Work []Work
	// Queued is how many keys wait for a worker, of which Work has only the first.
	Queued int
	// Failures are the last ones, the newest first. Conflicts are none.
	Failures []Failure
	// Latencies are how long keys took to reach each goal.
	Latencies map[string]Latency
}

// ledger keeps Work and Failures up to date.
type ledger struct {
	clock clock.PassiveClock

	mu       sync.Mutex
	work     map[Key]*Work
	failures []Failure
	// latencies are by goal.
	latencies map[string]*Latency
}

func newLedger(clk clock.PassiveClock) *ledger { return &ledger{clock: clk, work: map[Key]*Work{}} }

// entry finds or makes the entry of a key; the lock is held.
func (l *ledger) entry(key Key) *Work {
	w := l.work[key]
	if w == nil {
		w = &Work{Key: key, Since: l.clock.Now()}
		l.work[key] = w
	}
	return w
}

func (l *ledger) asked(key Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.work[key]
	switch {
	case w != nil && !w.Begun.IsZero():
		w.again = l.clock.Now()
	case w == nil && len(l.work) < keptQueued:
		l.entry(key)
	}
}

func (l *ledger) begin(key Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.entry(key)
	w.Begun, w.Next, w.again = l.clock.Now(), time.Time{}, time.Time{}
}

func (l *ledger) chose(key Key, step any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.work[key]; w != nil {
		w.Step = step
	}
}

// done is for a look that ended well. A key that nothing is left to do about is forgotten, unless somebody has asked
// for it meanwhile.
func (l *ledger) done(key Key, result Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if result.After <= 0 && result.Why == "" {
		if w := l.work[key]; w != nil && !w.again.IsZero() {
			l.work[key] = &Work{Key: key, Since: w.again}
			return
		}
		delete(l.work, key)
		return
	}
	w := l.entry(key)
	w.Begun, w.Next, w.Failures, w.Why = time.Time{}, time.Time{}, 0, result.Why
	if result.After > 0 {
		w.Next = l.clock.Now().Add(result.After)
	}
}

// failed is for a look that ended with an error. Without a next time it waits for a change.
func (l *ledger) failed(key Key, err error, next time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.entry(key)
	w.Begun, w.Next, w.Why = time.Time{}, next, fault.Shorten(fault.Sentence(err), keptWhy)
	w.Failures++
	l.failures = append(l.failures, Failure{Key: key, At: l.clock.Now(), Step: stepName(w.Step), Why: w.Why})
	if more := len(l.failures) - keptFailures; more > 0 {
		l.failures = slices.Delete(l.failures, 0, more)
	}
}

// forget drops a key that waits for a change only.
func (l *ledger) forget(key Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.work[key]; w != nil && w.Begun.IsZero() && w.Next.IsZero() {
		delete(l.work, key)
	}
}

// repeat is for a look that is to be repeated without anything having gone wrong.
func (l *ledger) repeat(key Key, next time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.entry(key)
	w.Begun, w.Next = time.Time{}, next
}

func (l *ledger) status(queue string) Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Status{Queue: queue, Failures: slices.Clone(l.failures), Latencies: l.measured(), Work: make([]Work, 0, len(l.work))}
	slices.Reverse(s.Failures)
	for _, w := range l.work {
		s.Work = append(s.Work, *w)
	}
	slices.SortFunc(s.Work, func(a, b Work) int {
		if c := a.Since.Compare(b.Since); c != 0 {
			return c
		}
		return strings.Compare(a.Key.String(), b.Key.String())
	})
	return s
}

// Status tells what the queue has to do.
func (q *Queue) Status() Status {
	s := q.ledger.status(q.options.Name)
	s.Queued = q.Len()
	return s
}

// choosing is how a room's step finds its way to the queue.
type choosing struct{}

// Chose notes what a room has decided about the key in hand, for the logs and for whoever looks at the queue. Steps must
// hold no secret.
func Chose(ctx context.Context, step any) {
	klog.FromContext(ctx).V(4).Info("step", "step", fmt.Sprintf("%T", step))
	if note, ok := ctx.Value(choosing{}).(func(any)); ok {
		note(step)
	}
	if trace.IsTraced(ctx) {
		trace.Chose(ctx, stepName(step))
	}
}

// withChoice lets Chose and Reached speak of a key.
func (q *Queue) withChoice(ctx context.Context, key Key) context.Context {
	ctx = context.WithValue(ctx, reaching{}, reacher{q.ledger, key})
	return context.WithValue(ctx, choosing{}, func(step any) { q.ledger.chose(key, step) })
}
