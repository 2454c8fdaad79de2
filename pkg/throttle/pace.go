// SPDX-License-Identifier: Apache-2.0

package throttle

import "time"

const (
	// perVain is how many calls are to be settled for one in vain.
	perVain = 3
	// fade is how much of what was measured before counts beside the last burst.
	fade = 0.8
)

// pace is when calls that ended without an answer are repeated.
type pace struct {
	deadline time.Duration
	// window is how many repeats may be out at once, and single that more than one was too much.
	window int
	single bool
	// notBefore is when the next repeat may go.
	notBefore time.Time
	// longest bounds a pause, and patience the wait of one repeat.
	longest, patience time.Duration

	// mark is since when the settled are counted, and last when the last was; spent and done are what was counted
	// before.
	mark    time.Time
	last    time.Time
	settled int
	spent   time.Duration
	done    float64
	// vains counts the repeats in vain since one was not, and paused is the pause after the last.
	vains  int
	paused time.Duration
}

func newPace(deadline time.Duration) pace {
	return pace{
		deadline: deadline, window: 1,
		longest: max(4*deadline, 30*time.Second), patience: max(10*deadline, 5*time.Minute),
	}
}

// start begins the counting: from then on the driver has something to do that nobody waits for.
func (p *pace) start(began time.Time) {
	if p.settled > 0 {
		p.count(p.last)
	}
	p.mark, p.vains, p.paused, p.single, p.window = began, 0, 0, false, 1
	p.notBefore = time.Time{}
}

// found notes that a repeat got an answer, so that the next may go at once. True means that the driver
// worked for it, instead of only telling what it had done.
func (p *pace) found(took time.Duration, now time.Time) bool {
	p.settled++
	p.last, p.vains = now, 0
	p.notBefore = now
	worked := took >= p.deadline/20
	if worked && !p.single {
		// One after the other would take as long as all of them together.
		p.window++
	}
	return worked
}

// vain notes a repeat in vain, and gives the pause that follows.
func (p *pace) vain(now time.Time) time.Duration {
	if p.window > 1 {
		// It may have been turned away for the sake of another repeat.
		p.window, p.single = 1, true
		return 0
	}
	p.vains++
	p.count(now)
	p.paused = p.pause()
	p.notBefore = now.Add(p.paused)
	return p.paused
}

// count adds what was settled up to now to what is known.
func (p *pace) count(now time.Time) {
	if p.settled > 0 {
		p.spent = time.Duration(fade * float64(p.spent))
		p.done *= fade
	}
	p.spent += now.Sub(p.mark)
	p.done += float64(p.settled)
	p.mark, p.settled = now, 0
}

// pause is how long it takes the driver to settle as many as one call in vain should stand for. What little is
// known at first may be far too long: it grows step by step.
func (p *pace) pause() time.Duration {
	most := p.deadline / 4
	if p.paused > 0 {
		most = min(2*p.paused, p.longest)
	}
	if p.done == 0 {
		return most
	}
	return min(max(time.Duration(perVain*float64(p.spent)/p.done), p.deadline/20, time.Millisecond), most)
}
