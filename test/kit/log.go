// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// process is one life of the program under test. It travels in the context of everything the program
// does, so that a dead process cannot have effects, not even from a goroutine that outlived it.
type process struct {
	dead   atomic.Bool
	cancel context.CancelFunc
}

type processKey struct{}

func newProcess(ctx context.Context) (context.Context, *process) {
	ctx, cancel := context.WithCancel(ctx)
	p := &process{cancel: cancel}
	return context.WithValue(ctx, processKey{}, p), p
}

func (p *process) kill() {
	p.dead.Store(true)
	p.cancel()
}

// moment is when, around an effect, a cut comes.
type moment int

const (
	never moment = iota
	// beforeSent: the process ends before the effect is sent.
	beforeSent
	// afterDone: the effect happens, and the process ends before it sees the answer.
	afterDone
	// answerLost: the effect happens, the process lives and sees a timeout.
	answerLost
)

func (m moment) String() string {
	return [...]string{"no cut", "end before it is sent", "end after it is done", "answer lost"}[m]
}

// Log is the one line of all effects: driver calls, API writes, events, in order.
type Log struct {
	mu    sync.Mutex
	lines []string
	// effects counts what processes sent; a cut comes at number cutAt, the first being 1.
	effects int
	cutAt   int
	cutWhen moment
	cutLine string
}

// Lines are all effects so far.
func (l *Log) Lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// Clear forgets the lines so far.
func (l *Log) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = nil
}

// Effects is how many driver calls and API writes the program has sent.
func (l *Log) Effects() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.effects
}

func (l *Log) write(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

// cut arranges for a cut at the nth effect from now.
func (l *Log) cut(nth int, when moment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cutAt, l.cutWhen, l.cutLine = l.effects+nth, when, ""
}

// takeCutLine says once at which effect the cut came, "" when it has not come.
func (l *Log) takeCutLine() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.cutLine
	l.cutLine = ""
	return line
}

// next counts an effect and says what happens to it.
func (l *Log) next(line string) moment {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.effects++
	if l.effects != l.cutAt {
		return never
	}
	l.cutLine = line
	return l.cutWhen
}

// effect does the work of one effect under the rules of processes and cuts. The work returns how the
// answer reads in the log. lost is the error of an answer that never came.
func (l *Log) effect(ctx context.Context, line string, lost error, work func() (string, error)) error {
	p, _ := ctx.Value(processKey{}).(*process)
	switch {
	case p != nil && p.dead.Load():
		return context.Canceled
	case ctx.Err() != nil:
		return ctx.Err()
	}
	when := never
	if p != nil {
		when = l.next(line)
	}
	if when == beforeSent {
		p.kill()
		return context.Canceled
	}
	answer, err := work()
	switch {
	case when == afterDone:
		l.write(line + answer + " [answer not seen: the process ended]")
		p.kill()
		return context.Canceled
	case when == answerLost:
		l.write(line + answer + " [answer lost]")
		return lost
	case p != nil:
		l.write(line + answer)
	}
	return err
}

// alive is effect for what only reads: it is not counted and not written down.
func alive(ctx context.Context) error {
	if p, _ := ctx.Value(processKey{}).(*process); p != nil && p.dead.Load() {
		return context.Canceled
	}
	return ctx.Err()
}
