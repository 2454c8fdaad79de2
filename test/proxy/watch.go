// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"sync"
	"time"
)

// forever is a lag that only a release ends.
const forever = time.Duration(math.MaxInt64)

// lag holds the events of watches back.
type lag struct {
	fault *Fault
	match Match
	d     time.Duration
}

// LagWatches makes watches deliver their events later by d, so that caches filled by them are old. It lasts until it is
// released, which delivers what was held. A hit is a piece of a stream that had to wait.
func (a *API) LagWatches(match Match, d time.Duration) *Fault {
	added := &lag{fault: newFault("lag", Always), match: match, d: d}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lags = append(a.lags, added)
	return added.fault
}

// HoldWatches lets no event through until it is released.
func (a *API) HoldWatches(match Match) *Fault { return a.LagWatches(match, forever) }

// CutWatches breaks the watches of a resource off, or all of them if it is empty, and says how many there were. What
// was held back is lost, and watchers will ask for it again.
func (a *API) CutWatches(resource string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	count := 0
	for w := range a.watches {
		if resource == "" || w.resource == resource {
			w.cut()
			delete(a.watches, w)
			count++
		}
	}
	return count
}

// Watches is how many watches of a resource are open, or of all resources if it is empty.
func (a *API) Watches(resource string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	count := 0
	for w := range a.watches {
		if resource == "" || w.resource == resource {
			count++
		}
	}
	return count
}

// ReleaseAll releases every fault that was made here.
func (a *API) ReleaseAll() {
	a.rules.ReleaseAll()
	a.mu.Lock()
	lags := a.lags
	a.lags = nil
	a.mu.Unlock()
	for _, l := range lags {
		l.fault.Release()
	}
}

// watch is an open stream of events.
type watch struct {
	resource string
	cut      context.CancelFunc
}

// piece is what came of a stream at one time.
type piece struct {
	content []byte
	came    time.Time
	isHit   bool
}

// stream passes a watch on until either side ends it, or it is cut.
func (a *API) stream(x *exchange, response *http.Response) error {
	ctx, cancel := context.WithCancel(x.r.Context())
	defer cancel()
	w := &watch{resource: x.request.Resource, cut: cancel}
	a.mu.Lock()
	a.watches[w] = struct{}{}
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.watches, w)
	}()

	flush := x.begin(response)
	flush()
	// An open watch is logged as such, since it may never be over.
	a.journal.edit(x.entry, func(q *Request) { *q = x.request })
	incoming := newQueue()
	done := make(chan struct{})
	go func() {
		defer close(done)
		incoming.fill(response.Body)
	}()
	defer func() {
		_ = response.Body.Close()
		<-done
	}()
	for {
		next, err := incoming.pop(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = a.awaitDue(ctx, x.request, next)
		}
		if err != nil {
			return err
		}
		if _, err := x.w.Write(next.content); err != nil {
			return errClientGone
		}
		flush()
	}
}

// awaitDue waits as long as any lag asks for. Lags may come and go meanwhile.
func (a *API) awaitDue(ctx context.Context, q Request, p *piece) error {
	for {
		longest := a.longestLag(q, p)
		if ctx.Err() != nil {
			return errClientGone
		}
		if longest == nil {
			return nil
		}
		if !p.isHit {
			p.isHit = longest.fault.strike()
		}
		var due <-chan time.Time
		timer := time.NewTimer(longest.d - time.Since(p.came))
		if longest.d != forever {
			due = timer.C
		}
		select {
		case <-due:
		case <-longest.fault.released:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

func (a *API) longestLag(q Request, p *piece) *lag {
	a.mu.Lock()
	defer a.mu.Unlock()
	var longest *lag
	for _, l := range a.lags {
		isDue := time.Since(p.came) >= l.d
		if isDue || !l.fault.isActive() || !l.match.matches(q) {
			continue
		}
		if longest == nil || l.d > longest.d {
			longest = l
		}
	}
	return longest
}

// queue keeps what came of a stream, however much, so that a stream held back does not hold the server up.
type queue struct {
	mu      sync.Mutex
	pieces  []*piece
	err     error
	changed chan struct{}
}

func newQueue() *queue { return &queue{changed: make(chan struct{}, 1)} }

func (q *queue) fill(source io.Reader) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := source.Read(buffer)
		q.mu.Lock()
		if n > 0 {
			q.pieces = append(q.pieces, &piece{content: append([]byte(nil), buffer[:n]...), came: time.Now()})
		}
		switch {
		case errors.Is(err, io.EOF):
			q.err = io.EOF
		case err != nil:
			q.err = fmt.Errorf("reading a watch: %w", err)
		}
		q.mu.Unlock()
		select {
		case q.changed <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// pop returns the end of the stream only after all that came before.
func (q *queue) pop(ctx context.Context) (*piece, error) {
	for {
		q.mu.Lock()
		if len(q.pieces) > 0 {
			first := q.pieces[0]
			q.pieces = q.pieces[1:]
			q.mu.Unlock()
			return first, nil
		}
		err := q.err
		q.mu.Unlock()
		if err != nil {
			return nil, err
		}
		select {
		case <-q.changed:
		case <-ctx.Done():
			return nil, errClientGone
		}
	}
}
