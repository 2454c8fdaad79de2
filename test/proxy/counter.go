// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"fmt"
	"sync"
)

// When says on which side of an effect a cut lies.
type When int

const (
	// BeforeSent cuts before the server has seen anything: the effect does not happen.
	BeforeSent When = iota + 1
	// AfterEffect cuts when the server has answered and nobody has seen the answer yet.
	AfterEffect
)

func (w When) String() string {
	switch w {
	case BeforeSent:
		return "before it is sent"
	case AfterEffect:
		return "after it took effect"
	}
	return fmt.Sprintf("When(%d)", int(w))
}

// Effect is one write to the API server, or one driver call that creates or deletes.
type Effect struct {
	// Number counts from 1, over all proxies that share the counter.
	Number int
	// Client is the process behind the proxy, as named in UseCounter.
	Client string
	// Agent is the user agent of a request to the API server.
	Agent string
	// Verb is the API verb, or the name of the RPC.
	Verb string
	// Kind is the resource, with its subresource; it is empty for an RPC.
	Kind string
	// Key is namespace and name, or what an RPC names first.
	Key string
	// Answer is the code of the server's answer: empty before there is one, "lost" if none came.
	Answer string
}

func (e Effect) String() string {
	text := fmt.Sprintf("%d: %s %s", e.Number, e.Client, e.Verb)
	for _, part := range []string{e.Kind, e.Key} {
		if part != "" {
			text += " " + part
		}
	}
	if e.Answer != "" {
		text += " → " + e.Answer
	}
	return text
}

const lostAnswer = "lost"

// Counter numbers effects in the order in which they are let through to a server, over all proxies that use it, and
// cuts at chosen ones.
//
// At a cut, no later effect of anybody is let through from the moment the cut effect has its number until the cut is
// over, and afterwards only effects of clients that are still connected. So when a cut kills the only process that
// works, exactly the effects up to the cut one have happened.
type Counter struct {
	mu      sync.Mutex
	effects []*Effect
	cuts    map[cutPoint]*cut
	// holding is open while a cut goes on.
	holding chan struct{}
}

type cutPoint struct {
	number int
	when   When
}

type cut struct {
	do   func(Effect)
	done chan Effect
}

// NewCounter starts at zero.
func NewCounter() *Counter { return &Counter{cuts: map[cutPoint]*cut{}} }

// CutAt calls do at the n-th effect, and afterwards the client never gets an answer for it: the request is swallowed,
// or its answer is. What is returned has the effect once do is back; if the effect is never reached, it has nothing.
//
// Other effects wait while do runs, which may be before the call that started the process has returned. To kill, do
// ends the process and waits until it is gone. To stop gently, do only sends the signal: a process that is waited for
// here could not do its last writes. To cut nothing but the request or the answer, do is nil.
func (c *Counter) CutAt(n int, when When, do func(Effect)) <-chan Effect {
	if do == nil {
		do = func(Effect) {}
	}
	wanted := &cut{do: do, done: make(chan Effect, 1)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cuts[cutPoint{n, when}] = wanted
	return wanted.done
}

// Count is how many effects have been let through or cut.
func (c *Counter) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.effects)
}

// Effects are all effects in their order, a cut one included.
func (c *Counter) Effects() []Effect {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]Effect, 0, len(c.effects))
	for _, e := range c.effects {
		all = append(all, *e)
	}
	return all
}

// Reset begins to count anew, and forgets cuts that were not reached.
func (c *Counter) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.effects, c.cuts = nil, map[cutPoint]*cut{}
}

// ticket is an effect that has been let through.
type ticket struct {
	effect *Effect
	// after is the cut that waits for the answer; while it does, its ticket is the one that holds back all others.
	after *cut
}

// begin gives an effect its number. The error says that it must not be sent, and that nothing is to be answered.
func (c *Counter) begin(ctx context.Context, effect Effect, isConnected func() bool) (*ticket, error) {
	if err := c.lockFree(ctx); err != nil {
		return nil, err
	}
	// The context learns of the end of a connection some time after the kernel does.
	if ctx.Err() != nil || !isConnected() {
		c.mu.Unlock()
		return nil, errClientGone
	}
	effect.Number = len(c.effects) + 1
	c.effects = append(c.effects, &effect)
	before := c.take(effect.Number, BeforeSent)
	t := &ticket{effect: &effect}
	if before == nil {
		t.after = c.take(effect.Number, AfterEffect)
	}
	if before != nil || t.after != nil {
		c.holding = make(chan struct{})
	}
	c.mu.Unlock()
	if before != nil {
		c.cut(before, effect)
		return nil, errSwallowed
	}
	return t, nil
}

// end takes the answer of an effect. The error says that it must not be passed on.
func (c *Counter) end(t *ticket, answer string) error {
	c.mu.Lock()
	t.effect.Answer = answer
	effect := *t.effect
	c.mu.Unlock()
	if t.after == nil {
		return nil
	}
	c.cut(t.after, effect)
	return errSwallowed
}

func (c *Counter) cut(w *cut, effect Effect) {
	defer func() {
		c.mu.Lock()
		close(c.holding)
		c.holding = nil
		c.mu.Unlock()
		w.done <- effect
	}()
	w.do(effect)
}

func (c *Counter) take(n int, when When) *cut {
	point := cutPoint{n, when}
	wanted := c.cuts[point]
	delete(c.cuts, point)
	return wanted
}

// lockFree locks at a time when no cut goes on.
func (c *Counter) lockFree(ctx context.Context) error {
	for {
		c.mu.Lock()
		holding := c.holding
		if holding == nil {
			return nil
		}
		c.mu.Unlock()
		select {
		case <-holding:
		case <-ctx.Done():
			return errClientGone
		}
	}
}
