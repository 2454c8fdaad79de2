// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
)

// DefaultGrace is how long keys in hand may go on after the end was announced.
const DefaultGrace = time.Second

// ErrNoGrace as the cause of the end of Run's context cancels keys in hand at once.
var ErrNoGrace = errors.New("what is in hand is cancelled at once")

type graceKey struct{}

// WithGrace lets what Run has in hand go on no longer than another context lasts, also when Run was told to end before that.
func WithGrace(ctx, grace context.Context) context.Context {
	return context.WithValue(ctx, graceKey{}, grace)
}

// Options of a queue.
type Options struct {
	// Name labels metrics and logs.
	Name string
	// Workers is how many keys of each lane are handled at once.
	Workers int
	// RetryStart and RetryMax bound the delay after a failure, which doubles each time.
	RetryStart, RetryMax time.Duration
	// Clock is the real one but in tests.
	Clock clock.WithTicker
	// All are the keys of all that the caches show; see Hear. It may be nil.
	All func() []Key
	// Lane sorts keys into lanes, each with its own workers, so that slow work of one sort does not hold
	// up another. It is asked when the key's turn comes, and when a key that waits is added again. Nil means one lane.
	Lane func(Key) string
	// RetriesApart gives keys that have failed, and wait no more, workers of their own in each lane: what waits
	// long for its first turn must not keep those away that could go on.
	RetriesApart bool
	// ID tells, for the logs, whose life a key is part of: the UID that the names at the driver are made of, which is the
	// same for a claim and its volume, or for a snapshot and its content. It may be nil, and empty when nobody knows.
	ID func(Key) types.UID
	// Grace is how long keys in hand may go on after Run's context has ended; 0 means DefaultGrace.
	Grace time.Duration
}

// Queue feeds keys to a Func. No key is ever handled by two workers at once, whatever its lane.
type Queue struct {
	options Options
	handle  Func
	backoff workqueue.TypedRateLimiter[Key]
	ledger  *ledger

	early sync.Mutex
	// queue is nil before Run: it has goroutines, which nobody would end if Run never came.
	queue workqueue.TypedDelayingInterface[Key]
	// heard are the keys that were added before, in order, and missed says that something was not kept.
	heard  []Key
	known  sets.Set[Key]
	missed bool

	mu    sync.Mutex
	lanes map[string]*lane
	// waits is the lane in which a key waits for a worker.
	waits map[Key]string
}

// lane is a sort of work: how much of it runs, and what waits for a worker.
type lane struct {
	running int
	waiting []Key
}

// NewQueue makes a queue; keys may be added before Run.
func NewQueue(handle Func, options Options) *Queue {
	options.Workers = max(options.Workers, 1)
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.Grace == 0 {
		options.Grace = DefaultGrace
	}
	return &Queue{
		options: options, handle: handle, lanes: map[string]*lane{}, waits: map[Key]string{}, ledger: newLedger(options.Clock),
		backoff: workqueue.NewTypedItemExponentialFailureRateLimiter[Key](options.RetryStart, options.RetryMax),
		known:   sets.Set[Key]{},
	}
}

// Add asks for a look at the key now. A key that waits for its next try is looked at now as well.
func (q *Queue) Add(key Key) {
	if q.keepEarly(key, false) {
		return
	}
	q.ledger.asked(key)
	q.queue.Add(key)
	q.changeLane(key)
}

// Forget says that what a key stands for is gone for good, so that no change will come that it could wait for. A key that is
// in hand, or is looked at again by itself, comes to its own end.
func (q *Queue) Forget(key Key) { q.ledger.forget(key) }

// Failures tells how often in a row the key has failed.
func (q *Queue) Failures(key Key) int { return q.backoff.NumRequeues(key) }

// Len is how many keys wait for a worker.
func (q *Queue) Len() int {
	q.early.Lock()
	n := len(q.heard)
	if q.queue != nil {
		n = q.queue.Len()
	}
	q.early.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.lanes {
		n += len(l.waiting)
	}
	return n
}

// keptEarly is how many keys are kept before Run.
const keptEarly = 10_000

// Hear adds keys that a watch tells of. Before Run only some are kept: who stands by for the lead hears of all that comes and goes, and
// would keep a key of each for as long. Where there were more, Run begins with all there is; to look at all that the caches hold
// takes a large cluster seconds, and nobody who has just started has to.
func (q *Queue) Hear(keys []Key) {
	for _, key := range keys {
		if !q.keepEarly(key, q.options.All != nil) {
			q.Add(key)
		}
	}
}

// keepEarly keeps a key for Run, unless that has begun.
func (q *Queue) keepEarly(key Key, bounded bool) bool {
	q.early.Lock()
	defer q.early.Unlock()
	switch {
	case q.queue != nil:
		return false
	case q.known.Has(key):
	case bounded && len(q.heard) >= keptEarly:
		q.missed = true
	default:
		q.ledger.asked(key)
		q.known.Insert(key)
		q.heard = append(q.heard, key)
	}
	return true
}

// begin hands over what was kept, once.
func (q *Queue) begin() {
	q.early.Lock()
	if q.queue == nil {
		q.queue = workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[Key]{Name: q.options.Name, Clock: q.options.Clock})
		for _, key := range q.heard {
			q.queue.Add(key)
		}
		q.heard, q.known = nil, nil
	}
	missed := q.missed
	q.missed = false
	q.early.Unlock()
	if !missed {
		return
	}
	for _, key := range q.options.All() {
		q.Add(key)
	}
}

// Run hands out keys until the context ends. Then no further key is begun; those in hand get the grace
// time, unless the cause is ErrNoGrace, are cancelled, and are waited for.
func (q *Queue) Run(ctx context.Context) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	if grace, ok := ctx.Value(graceKey{}).(context.Context); ok {
		defer context.AfterFunc(grace, cancel)()
	}
	q.begin()
	stop := context.AfterFunc(ctx, q.queue.ShutDown)
	defer stop()

	var busy sync.WaitGroup
	for {
		key, closed := q.queue.Get()
		if closed || ctx.Err() != nil {
			break
		}
		if name, free := q.take(key); free {
			busy.Add(1)
			go func() {
				defer busy.Done()
				q.work(work, ctx, name, key)
			}()
		}
	}

	finished := make(chan struct{})
	go func() { defer close(finished); busy.Wait() }()
	if errors.Is(context.Cause(ctx), ErrNoGrace) {
		cancel()
	}
	grace := q.options.Clock.NewTimer(q.options.Grace)
	defer grace.Stop()
	select {
	case <-finished:
	case <-grace.C():
		cancel()
		<-finished
	}
	q.drain()
	return nil
}

// drain takes out what is left: else its metrics would count that for ever, and the queue of the next term under the same name with it.
func (q *Queue) drain() {
	q.queue.ShutDown()
	for {
		if _, closed := q.queue.Get(); closed {
			return
		}
	}
}

// laneOf names the lane of a key as it is now.
func (q *Queue) laneOf(key Key) (name string) {
	if q.options.Lane != nil {
		name = q.options.Lane(key)
	}
	if q.options.RetriesApart && q.backoff.NumRequeues(key) > 0 {
		name += "\x00again"
	}
	return name
}

// changeLane lets a key that waits in the lane of what it was, such as what is to be made and has been deleted since, wait in the one of what it is. It
// was added just now, so that the queue underneath brings it back.
func (q *Queue) changeLane(key Key) {
	q.mu.Lock()
	from, waits := q.waits[key]
	q.mu.Unlock()
	if !waits || q.laneOf(key) == from || !q.leaveLane(from, key) {
		return
	}
	q.queue.Add(key) // what Add added may have been handed out already
	q.queue.Done(key)
}

// leaveLane takes a key out of those that wait in a lane. False means that a worker has it already.
func (q *Queue) leaveLane(name string, key Key) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if still, waits := q.waits[key]; !waits || still != name {
		return false
	}
	l := q.lanes[name]
	l.waiting = slices.DeleteFunc(l.waiting, func(other Key) bool { return other == key })
	delete(q.waits, key)
	return true
}

// take finds the key's lane and a free worker in it; without one the key waits in the lane. It stays
// "in processing" for the queue underneath meanwhile, so nobody else can get it.
func (q *Queue) take(key Key) (name string, free bool) {
	name = q.laneOf(key)
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lanes[name]
	if l == nil {
		l = &lane{}
		q.lanes[name] = l
	}
	if l.running >= q.options.Workers {
		l.waiting, q.waits[key] = append(l.waiting, key), name
		return name, false
	}
	l.running++
	return name, true
}

// work handles a key, then what waits in the same lane.
func (q *Queue) work(work, running context.Context, name string, key Key) {
	for {
		if running.Err() == nil {
			q.handleOne(work, key)
		}
		q.queue.Done(key)
		next, more := q.next(name)
		if !more {
			return
		}
		key = next
	}
}

func (q *Queue) next(name string) (Key, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lanes[name]
	if len(l.waiting) == 0 {
		if l.running--; l.running == 0 {
			delete(q.lanes, name) // names are no bounded set
		}
		return Key{}, false
	}
	key := l.waiting[0]
	l.waiting = l.waiting[1:]
	delete(q.waits, key)
	return key, true
}

func (q *Queue) handleOne(ctx context.Context, key Key) {
	logger := q.loggerFor(ctx, key)
	q.ledger.begin(key)
	result, err := q.lookOnce(q.withChoice(klog.NewContext(ctx, logger), key), key)
	switch {
	case err == nil:
		q.backoff.Forget(key)
		q.ledger.done(key, result)
		if result.After > 0 {
			q.queue.AddAfter(key, result.After)
		}
	case ctx.Err() != nil:
		// The process is ending; the next one starts from what is stored.
	case fault.IsTerminal(err):
		q.backoff.Forget(key)
		q.ledger.failed(key, err, time.Time{})
		logger.Error(err, "not tried again before something changes")
	default:
		q.retry(logger, key, err)
	}
}

// loggerFor makes each line about a key name it, down to the calls of the driver.
func (q *Queue) loggerFor(ctx context.Context, key Key) klog.Logger {
	logger := klog.FromContext(ctx).WithValues("queue", q.options.Name, "key", key.String())
	if q.options.ID == nil {
		return logger
	}
	if id := q.options.ID(key); id != "" {
		return logger.WithValues("id", id)
	}
	return logger
}

func (q *Queue) retry(logger klog.Logger, key Key, err error) {
	after := q.backoff.When(key)
	if asked, ok := fault.RetryDelay(err); ok {
		after = asked
	}
	q.queue.AddAfter(key, after)
	next := q.options.Clock.Now().Add(after)
	if apierrors.IsConflict(err) {
		// Somebody else wrote first; that is how optimistic locks work.
		q.ledger.repeat(key, next)
		logger.V(4).Info("object changed meanwhile, trying again", "after", after, "err", err)
		return
	}
	q.ledger.failed(key, err, next)
	if fault.IsWaiting(err) {
		logger.V(2).Info("waits, and will be tried again", "after", after, "why", err.Error())
		return
	}
	logger.Error(err, "will be tried again", "after", after)
}
