// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"context"
	"errors"
	"sync"
	"time"
)

// group lets those who want something written at the same time share a write. Whoever comes first while
// nobody writes does it for all who have come until then; the next write is done by one of those who came
// meanwhile.
type group struct {
	mu sync.Mutex
	// next is who waits for the write after the one under way, nil when nobody does.
	next    *batch
	writing bool
	// last is when the last write began.
	last time.Time
	// arrived says that one more waits.
	arrived chan struct{}
}

type batch struct {
	size int
	done chan struct{}
	err  error
	// turn makes one of the batch its writer.
	turn chan struct{}
}

// join adds one to the batch that is written next; own tells that nobody writes, so that it is its turn.
func (g *group) join() (b *batch, own bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.next == nil {
		g.next = &batch{done: make(chan struct{}), turn: make(chan struct{}, 1)}
	}
	g.next.size++
	select {
	case g.arrived <- struct{}{}:
	default:
	}
	own = !g.writing
	g.writing = true
	return g.next, own
}

// close ends the joining of a batch, whose write begins now.
func (g *group) close(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next, g.last = nil, now
}

// finish tells a batch what came of it, and passes the writing on.
func (g *group) finish(b *batch, err error) {
	b.err = err
	close(b.done)
	g.pass()
}

func (g *group) pass() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.next == nil {
		g.writing = false
		return
	}
	g.next.turn <- struct{}{} // has room for the one turn that there is
}

// due is when a write may begin: at once when the last one is long ago, and the sooner the more wait for
// it.
func (g *group) due(b *batch, linger time.Duration) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	missing := max(enough-b.size, 0)
	return g.last.Add(linger * time.Duration(missing) / enough)
}

// commit has everything written that should be, and waits for that.
func (r *Record) commit(ctx context.Context) error {
	b, own := r.group.join()
	if !own {
		select {
		case <-b.done:
			return b.err
		case <-b.turn:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := r.linger(ctx, b); err != nil {
		r.group.pass() // somebody else of the batch, or who comes next
		return err
	}
	r.group.close(r.options.Clock.Now())
	err := errBroken
	// Also when the write ends by a fault of this program, which is that of one look: the others wait for it here.
	defer func() { r.group.finish(b, err) }()
	err = r.write(ctx)
	return err
}

// errBroken is the end of a write whose writer did not come back from it. What was written is unknown, and each of the batch tries again.
var errBroken = errors.New("the write of the record broke off")

func (r *Record) linger(ctx context.Context, b *batch) error {
	for {
		wait := r.group.due(b, r.options.Linger).Sub(r.options.Clock.Now())
		if wait <= 0 || ctx.Err() != nil {
			return ctx.Err()
		}
		timer := r.options.Clock.NewTimer(wait)
		select {
		case <-timer.C():
		case <-r.group.arrived:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}
