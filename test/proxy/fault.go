// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Always is the number of times of a fault that stays until it is released.
const Always = 0

// Fault is a rule in force. It is spent after as many hits as it was made for.
type Fault struct {
	name     string
	released chan struct{}

	mu      sync.Mutex
	times   int
	hits    int
	over    bool
	changed chan struct{}
}

func newFault(name string, times int) *Fault {
	return &Fault{name: name, times: times, released: make(chan struct{}), changed: make(chan struct{})}
}

// Release ends the fault: nothing is hit any more, and what hangs goes on.
func (f *Fault) Release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.over {
		f.over = true
		close(f.released)
	}
}

// Hits is how often the fault has struck.
func (f *Fault) Hits() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hits
}

// AwaitHits waits until the fault has struck n times.
func (f *Fault) AwaitHits(ctx context.Context, n int) error {
	for {
		f.mu.Lock()
		hits, changed := f.hits, f.changed
		f.mu.Unlock()
		if hits >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("awaiting hit %d of fault %q, there were %d: %w", n, f.name, hits, ctx.Err())
		}
	}
}

// isActive says whether the next that matches would be hit.
func (f *Fault) isActive() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.over && (f.times <= Always || f.hits < f.times)
}

// strike uses the fault once, if there is anything left of it.
func (f *Fault) strike() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over || f.times > Always && f.hits >= f.times {
		return false
	}
	f.hits++
	close(f.changed)
	f.changed = make(chan struct{})
	return true
}

// stage is the side of the server's work on which a fault lies.
type stage int

const (
	before stage = iota
	after
)

// selector says whether a call is meant.
type selector[C any] interface {
	matches(call C) bool
}

// rules are the faults of one proxy: S selects calls C, which A answers.
type rules[S selector[C], C, A any] struct {
	mu  sync.Mutex
	all []*rule[S, A]
}

type rule[S, A any] struct {
	fault *Fault
	match S
	stage stage
	// A rule waits, then hangs, then answers; each kind of rule does one of it.
	wait    time.Duration
	isHang  bool
	answers bool
	answer  A
}

// Fail answers instead of the server, which never sees the request.
func (r *rules[S, C, A]) Fail(match S, answer A, times int) *Fault {
	return r.add("fail", times, rule[S, A]{match: match, stage: before, answers: true, answer: answer})
}

// FailAfter lets the server do it, and answers something else.
func (r *rules[S, C, A]) FailAfter(match S, answer A, times int) *Fault {
	return r.add("fail after", times, rule[S, A]{match: match, stage: after, answers: true, answer: answer})
}

// Delay holds a request back before the server sees it.
func (r *rules[S, C, A]) Delay(match S, d time.Duration, times int) *Fault {
	return r.add("delay", times, rule[S, A]{match: match, stage: before, wait: d})
}

// DelayAfter holds the answer back.
func (r *rules[S, C, A]) DelayAfter(match S, d time.Duration, times int) *Fault {
	return r.add("delay after", times, rule[S, A]{match: match, stage: after, wait: d})
}

// Hang holds requests back until the fault is released; the server sees them then.
func (r *rules[S, C, A]) Hang(match S, times int) *Fault {
	return r.add("hang", times, rule[S, A]{match: match, stage: before, isHang: true})
}

// HangAfter lets the server do it, and holds the answer back until the fault is released.
func (r *rules[S, C, A]) HangAfter(match S, times int) *Fault {
	return r.add("hang after", times, rule[S, A]{match: match, stage: after, isHang: true})
}

// ReleaseAll releases every fault that was made here.
func (r *rules[S, C, A]) ReleaseAll() {
	r.mu.Lock()
	all := r.all
	r.all = nil
	r.mu.Unlock()
	for _, one := range all {
		one.fault.Release()
	}
}

func (r *rules[S, C, A]) add(name string, times int, added rule[S, A]) *Fault {
	added.fault = newFault(name, times)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, &added)
	return added.fault
}

func (r *rules[S, C, A]) matching(call C, at stage) []*rule[S, A] {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []*rule[S, A]
	for _, one := range r.all {
		if one.stage == at && one.fault.isActive() && one.match.matches(call) {
			found = append(found, one)
		}
	}
	return found
}

// isPending says whether anything would happen to the call.
func (r *rules[S, C, A]) isPending(call C, at stage) bool {
	return len(r.matching(call, at)) > 0
}

// blow is what became of a call that ran into faults.
type blow[A any] struct {
	// names are those of the faults that struck.
	names []string
	// answer stands in for the server's, if isAnswered.
	answer     A
	isAnswered bool
}

// suffer lets faults strike in the order in which they were made. The first that answers is the last.
func (r *rules[S, C, A]) suffer(ctx context.Context, call C, at stage) (blow[A], error) {
	var b blow[A]
	for _, one := range r.matching(call, at) {
		if !one.fault.strike() {
			continue
		}
		b.names = append(b.names, one.fault.name)
		if err := one.pause(ctx); err != nil {
			return b, err
		}
		if one.answers {
			b.answer, b.isAnswered = one.answer, true
			return b, nil
		}
	}
	return b, nil
}

func (r *rule[S, A]) pause(ctx context.Context) error {
	var due <-chan time.Time
	switch {
	case r.isHang:
	case r.wait > 0:
		timer := time.NewTimer(r.wait)
		defer timer.Stop()
		due = timer.C
	default:
		return nil
	}
	select {
	case <-due:
		return nil
	case <-r.fault.released:
		return nil
	case <-ctx.Done():
		return errClientGone
	}
}
