// SPDX-License-Identifier: Apache-2.0

package throttle

import "time"

const (
	// initial is the limit that a flow begins with: with it a driver that makes two volumes in a second
	// answers within the usual deadlines, and one that is fast lets it grow in no time.
	initial = 16
	// fewest is how far the limit falls as long as anything gets done. Only when nothing does it falls to 1.
	fewest = 4
)

// limit is how many calls a flow may have at the driver.
type limit struct {
	value    float64
	start    float64
	most     int
	fixed    bool
	deadline time.Duration
	// hurt tells that it was once too high; from then on it grows slowly.
	hurt bool
	// shrunk is when it shrank last, and settled when something was done last.
	shrunk, settled time.Time
}

func newLimit(options Options, most int) limit {
	start := float64(min(initial, most))
	l := limit{value: start, start: start, most: most, deadline: options.Deadline, fixed: options.Fixed > 0}
	if l.fixed {
		l.value = float64(most)
	}
	return l
}

func (l *limit) now() int { return int(l.value) }

// grow follows a good answer. Only when it held up other calls was the limit of any importance. What took more than half of the deadline
// might not come in time with more at once. As long as it doubles with each round, what is learnt of a round is
// old by the time the next is out: there a quarter is the bound.
func (l *limit) grow(took time.Duration, now time.Time, held bool) {
	l.settled = now
	switch {
	case l.fixed || !held || took > l.deadline/2:
		return
	case l.value < l.start, !l.hurt && took <= l.deadline/4:
		l.value++
	default:
		l.value += 1 / l.value
	}
	l.value = min(l.value, float64(l.most))
}

// recover follows a good answer that came too late for its first call. It says nothing in favour of more
// than at the start.
func (l *limit) recover(now time.Time) {
	l.settled = now
	if !l.fixed && l.value < l.start {
		l.value = min(l.value+1, l.start)
	}
}

// shrink halves the limit, but once for all calls that were out together.
func (l *limit) shrink(began, now time.Time, floor int) {
	if l.fixed || !l.shrunk.IsZero() && !began.After(l.shrunk) {
		return
	}
	l.hurt, l.shrunk = true, now
	l.value = min(l.value, max(l.value/2, float64(floor)))
}

// floor is how far a call that began then may make it fall.
func (l *limit) floor(began time.Time) int {
	if l.settled.After(began) {
		return fewest
	}
	return 1
}
