// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"maps"
	"time"
)

// Goals that a key can reach. They are few, since each is a label of a metric.
const (
	Provisioned = "provisioned"
	Ready       = "ready"
	Deleted     = "deleted"
)

// Bounds are the upper ends of a Latency's buckets, in seconds: from what a driver in memory takes to what
// somebody has to be woken for.
var Bounds = []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600}

// Latency is how long keys took to reach a goal.
type Latency struct {
	Count uint64
	Sum   float64
	// Within counts what is within each of Bounds.
	Within map[float64]uint64
}

func (l *Latency) observe(took time.Duration) {
	if l.Within == nil {
		l.Within = make(map[float64]uint64, len(Bounds))
		for _, bound := range Bounds {
			l.Within[bound] = 0
		}
	}
	l.Count++
	l.Sum += took.Seconds()
	for _, bound := range Bounds {
		if took.Seconds() <= bound {
			l.Within[bound]++
		}
	}
}

// wholeSecond is what the times in objects are rounded by, and the way of a new object to here on top.
const wholeSecond = 2 * time.Second

// reaching is how a goal that a room has reached finds its way to the queue.
type reaching struct{}

type reacher struct {
	ledger *ledger
	key    Key
}

// Reached notes that the key in hand has got to where users wanted it, with all tries on the way. from is what its
// object knows of the beginning, or zero; it counts where this process came later, since it is rounded.
func Reached(ctx context.Context, goal string, from time.Time) {
	if r, ok := ctx.Value(reaching{}).(reacher); ok {
		r.ledger.reached(r.key, goal, from)
	}
}

// Postponed notes that a room waits with what it has decided before, for another try. The step that is shown stays the one
// that is waited with: that a deletion waits for its next try is not what is wrong with it.
func Postponed(ctx context.Context, step any) {
	if r, ok := ctx.Value(reaching{}).(reacher); ok && r.ledger.hasStep(r.key) {
		return
	}
	Chose(ctx, step)
}

func (l *ledger) hasStep(key Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.work[key]
	return w != nil && w.Step != nil
}

func (l *ledger) reached(key Key, goal string, from time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	since := now
	if w := l.work[key]; w != nil {
		since = w.Since
	}
	if !from.IsZero() && since.Sub(from) > wholeSecond {
		since = from
	}
	if l.latencies == nil {
		l.latencies = map[string]*Latency{}
	}
	if l.latencies[goal] == nil {
		l.latencies[goal] = &Latency{}
	}
	l.latencies[goal].observe(max(0, now.Sub(since)))
}

// measured is a copy of all latencies; the lock is held.
func (l *ledger) measured() map[string]Latency {
	if len(l.latencies) == 0 {
		return nil
	}
	all := make(map[string]Latency, len(l.latencies))
	for goal, latency := range l.latencies {
		all[goal] = Latency{Count: latency.Count, Sum: latency.Sum, Within: maps.Clone(latency.Within)}
	}
	return all
}
