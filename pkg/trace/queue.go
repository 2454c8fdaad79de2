// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// queue gathers spans until they are sent. Its room is bounded: what finds no place is dropped, so that nothing ever waits for
// the collector.
type queue struct {
	settings *settings
	clock    clock.Clock
	complain func(error)
	sender   *sender
	waiting  chan Record
	dropped  atomic.Bool

	stop   context.CancelFunc
	once   sync.Once
	ending chan struct{}
	ended  chan struct{}
}

// newQueue begins to send what is added, until its end.
func newQueue(ctx context.Context, s *settings, o Options) (*queue, error) {
	send, err := newSender(s, o)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	q := &queue{
		settings: s, clock: o.Clock, complain: o.Complain, sender: send, waiting: make(chan Record, s.most),
		stop: stop, ending: make(chan struct{}), ended: make(chan struct{}),
	}
	go q.run(ctx)
	return q, nil
}

func (q *queue) add(r Record) {
	select {
	case q.waiting <- r:
	default:
		if !q.dropped.Swap(true) {
			q.complain(fmt.Errorf("the collector takes spans more slowly than they are made, and the queue has room for %d: some are dropped", q.settings.most))
		}
	}
}

// run sends full batches at once, and others when their first span has waited long enough. An idle process does not wake for it.
func (q *queue) run(ctx context.Context) {
	defer close(q.ended)
	defer q.sender.close()
	var batch []Record
	var due <-chan time.Time
	for {
		select {
		case r := <-q.waiting:
			if batch = append(batch, r); len(batch) < q.settings.batch {
				if len(batch) == 1 {
					due = q.clock.After(q.settings.delay)
				}
				continue
			}
		case <-due:
		case <-q.ending:
			q.drain(ctx, batch)
			return
		}
		q.sender.send(ctx, batch)
		batch, due = nil, nil
	}
}

// drain sends what is there.
func (q *queue) drain(ctx context.Context, batch []Record) {
	for {
		select {
		case r := <-q.waiting:
			batch = append(batch, r)
			continue
		default:
		}
		break
	}
	for len(batch) > 0 && ctx.Err() == nil {
		n := min(len(batch), q.settings.batch)
		q.sender.send(ctx, batch[:n])
		batch = batch[n:]
	}
}

// end sends what is there for as long as the context lasts, and gives up then.
func (q *queue) end(ctx context.Context) {
	defer q.stop()
	q.once.Do(func() { close(q.ending) })
	select {
	case <-q.ended:
	case <-ctx.Done():
		q.stop()
		<-q.ended
	}
}
