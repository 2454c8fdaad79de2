// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
)

// gate lets the calls of one operation through.
type gate struct {
	op      fault.Operation
	options Options
	most    int

	mu      sync.Mutex
	flows   []*flow
	turn    int
	running int
	// names are the objects that a call is out for: an object never has two.
	names map[string]bool
}

// call is one that waits or is out.
type call struct {
	flow  *flow
	name  string
	ready chan struct{}
	// since is when it began to wait, and began when its turn came.
	since, began time.Time
	// again is what is known of earlier calls for the object, nil for a new one.
	again *unsettled
	// held tells that the limit was what others waited for when it began.
	held bool
}

// verdict is how a call ended.
type verdict struct {
	pressure fault.Pressure
	ok       bool
	// gone: the caller gave up, or nobody listened, which says nothing about how much the driver bears.
	gone bool
}

func newGate(op fault.Operation, options Options) *gate {
	most := max(options.Most, 1)
	if options.Fixed > 0 {
		most = options.Fixed
	}
	return &gate{op: op, options: options, most: most, names: map[string]bool{}}
}

// enter waits for the turn of a call. It holds no lock and no deadline meanwhile, and ends with the context.
func (g *gate) enter(ctx context.Context, name string) (*call, error) {
	c := &call{name: name, ready: make(chan struct{})}
	wake := g.queue(c, flowOf(ctx))
	for {
		select {
		case <-c.ready:
			return c, nil
		default:
		}
		timer := g.options.Clock.NewTimer(wake)
		select {
		case <-c.ready:
			timer.Stop()
			return c, nil
		case <-ctx.Done():
			timer.Stop()
			g.abandon(c)
			return nil, fmt.Errorf("waiting until the driver has time for a %s: %w", g.op, ctx.Err())
		case <-timer.C():
			wake = g.look(c)
		}
	}
}

// queue puts a call into its flow, and gives the time after which it may have its turn without anything happening.
func (g *gate) queue(c *call, flow string) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.options.Clock.Now()
	c.flow, c.since = g.flow(flow, now), now
	c.flow.add(c)
	g.dispatch(now)
	return c.flow.wake(c, now)
}

func (g *gate) look(c *call) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.options.Clock.Now()
	g.dispatch(now)
	return c.flow.wake(c, now)
}

// abandon takes back a call whose caller does not wait any more.
func (g *gate) abandon(c *call) {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-c.ready:
		// The turn came at the same moment, and goes to another.
		g.end(c)
	default:
		c.flow.remove(c)
	}
	g.dispatch(g.options.Clock.Now())
}

// leave ends a call and tells when its repeat may come; 0 means that the gate has no say in that.
func (g *gate) leave(c *call, v verdict) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.options.Clock.Now()
	g.end(c)
	after := time.Duration(0)
	if !v.gone {
		after = c.flow.learn(c, v, now)
	}
	g.dispatch(now)
	return after
}

func (g *gate) end(c *call) {
	g.running--
	c.flow.running--
	delete(g.names, c.name)
	if c.again != nil {
		c.again.out = false
		c.flow.repeats--
	}
}

// dispatch lets through what may go: flows take turns, and within a flow the order is kept.
func (g *gate) dispatch(now time.Time) {
	for g.running < g.most {
		c := g.next(now)
		if c == nil {
			return
		}
		g.running++
		c.flow.begin(c, now)
		if c.name != "" {
			g.names[c.name] = true
		}
		close(c.ready)
	}
}

func (g *gate) next(now time.Time) *call {
	for i := range g.flows {
		at := (g.turn + i) % len(g.flows)
		if c := g.flows[at].next(now, g.names); c != nil {
			g.turn = at + 1
			return c
		}
	}
	return nil
}

// manyFlows is from when on flows that nobody uses are forgotten, with what was learnt in them.
const manyFlows = 64

func (g *gate) flow(name string, now time.Time) *flow {
	for _, f := range g.flows {
		if f.name == name {
			return f
		}
	}
	if len(g.flows) >= manyFlows {
		g.flows = slices.DeleteFunc(g.flows, func(f *flow) bool { return f.isIdle(now) })
		g.turn = 0
	}
	f := newFlow(name, g.options, g.most)
	g.flows = append(g.flows, f)
	return f
}
