// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"slices"
	"time"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
)

// flow is what the calls of one class and operation share: their order, their limit, and what is known of
// those that ended without an answer.
type flow struct {
	name     string
	deadline time.Duration
	limit    limit
	pace     pace

	// fresh and again wait: calls for objects that the driver has not heard of, and repeats.
	fresh, again []*call
	// running are all that are out, repeats those among them that repeat.
	running, repeats int
	// open are the objects that the driver may be at work on although no call is out.
	open map[string]*unsettled
	// prompt counts the new calls that were answered well, and lastPrompt is when the latest of them began.
	prompt     int
	lastPrompt time.Time
}

// unsettled is an object whose last call ended without an answer about it.
type unsettled struct {
	// first is when the first call for it began; clean tells that the driver took that one up then.
	first time.Time
	clean bool
	// due is when the repeat may come.
	due time.Time
	// prompt is how many new calls had been answered well by then.
	prompt int
	// late counts the repeats that the deadline ended, busy those that were turned away.
	late, busy int
	// waiting and out tell that the repeat is here.
	waiting, out bool
}

func newFlow(name string, options Options, most int) *flow {
	return &flow{
		name: name, deadline: options.Deadline, open: map[string]*unsettled{},
		limit: newLimit(options, most), pace: newPace(options.Deadline),
	}
}

// add puts a call at the end of its line.
func (f *flow) add(c *call) {
	if known := f.open[c.name]; known != nil {
		c.again = known
		known.waiting = true
		f.again = append(f.again, c)
		return
	}
	f.fresh = append(f.fresh, c)
}

func (f *flow) remove(c *call) {
	isIt := func(other *call) bool { return other == c }
	f.fresh, f.again = slices.DeleteFunc(f.fresh, isIt), slices.DeleteFunc(f.again, isIt)
	if c.again != nil {
		c.again.waiting = false
	}
}

// next gives the call whose turn it is, nil when all have to wait. Repeats go first: they may find that
// what they ask for is done, which makes room.
func (f *flow) next(now time.Time, out map[string]bool) *call {
	if c := f.nextRepeat(now, out); c != nil {
		return c
	}
	// Where new calls have been answered in time, one finds out whether they still are, and what hangs by itself.
	isScout := f.prompt > 0 && f.running == f.repeats
	if !isScout && f.load(now) >= f.limit.now() {
		return nil
	}
	for _, c := range f.fresh {
		if !out[c.name] {
			return c
		}
	}
	return nil
}

// nextRepeat is the repeat of the oldest that is due, or one that has waited beyond all patience.
func (f *flow) nextRepeat(now time.Time, out map[string]bool) *call {
	var oldest *call
	mayGo := f.repeats < f.pace.window && !now.Before(f.pace.notBefore)
	for _, c := range f.again {
		overdue := now.Sub(c.since) >= f.pace.patience
		if out[c.name] || !overdue && (!mayGo || now.Before(c.again.due)) {
			continue
		}
		if oldest == nil || c.again.first.Before(oldest.again.first) {
			oldest = c
		}
	}
	return oldest
}

// begin takes a call out of its line.
func (f *flow) begin(c *call, now time.Time) {
	f.remove(c)
	c.began = now
	c.held = len(f.fresh) > 0 || f.load(now)+1 >= f.limit.now()
	f.running++
	if c.again != nil {
		c.again.out = true
		f.repeats++
	}
}

// enough is how many times a driver is believed that it is at work on an object, if that is what it says.
const enough = 3

// load is how many objects the driver is at work on, as far as can be known. One hangs by itself, and would
// hold its place for ever, if as many later calls as there may be were answered in time, or if its repeat found no
// answer either; and one whose repeat does not come was given up.
func (f *flow) load(now time.Time) int {
	n := f.running
	grace := f.deadline / 3
	for _, u := range f.open {
		if !u.out && u.late == 0 && u.busy < enough && f.prompt-u.prompt < f.limit.now() && (u.waiting || now.Before(u.due.Add(grace))) {
			n++
		}
	}
	return n
}

// wake is when a waiting call may have its turn although nothing has happened until then.
func (f *flow) wake(c *call, now time.Time) time.Duration {
	tick := max(time.Second, f.deadline/3)
	if c.again == nil {
		return tick
	}
	due := c.again.due
	if f.pace.notBefore.After(due) {
		due = f.pace.notBefore
	}
	if due.After(now) {
		return due.Sub(now)
	}
	return tick
}

// learn draws the conclusions from the end of a call, and gives the time until its repeat.
func (f *flow) learn(c *call, v verdict, now time.Time) time.Duration {
	f.sweep(now)
	switch v.pressure {
	case fault.Late:
		return f.afterLate(c, now)
	case fault.Busy:
		return f.afterBusy(c, now)
	case fault.Overloaded:
		f.limit.shrink(c.began, now, fewest)
		return 0
	default:
		f.afterAnswer(c, v, now)
		return 0
	}
}

// afterLate: the first time it may just be that the work takes longer than the deadline, and calling less
// would not help. A second time it is too much at once, as it is when others of the time were answered.
func (f *flow) afterLate(c *call, now time.Time) time.Duration {
	if c.name == "" {
		f.limit.shrink(c.began, now, 1)
		return 0
	}
	if c.again == nil {
		if f.lastPrompt.After(c.began.Add(-f.deadline)) {
			f.limit.shrink(c.began, now, fewest)
		}
		u := f.leaveOpen(c, now)
		u.clean = true
		u.due = now.Add(f.deadline / 4)
		return u.due.Sub(now)
	}
	c.again.late++
	f.limit.shrink(c.began, now, f.limit.floor(c.began))
	return f.inVain(c.again, now)
}

// afterBusy: the driver works on the object since an earlier call, which for a new one was not ours, or it
// turns away all but one.
func (f *flow) afterBusy(c *call, now time.Time) time.Duration {
	switch {
	case c.name == "":
		f.limit.shrink(c.began, now, 1)
		return 0
	case c.again == nil:
		f.limit.shrink(c.began, now, 1)
		u := f.leaveOpen(c, now)
		u.due = now.Add(f.deadline / 20)
		return u.due.Sub(now)
	}
	c.again.busy++
	return f.inVain(c.again, now)
}

// inVain puts off a repeat that found nothing out, and all behind it.
func (f *flow) inVain(u *unsettled, now time.Time) time.Duration {
	pause := f.pace.vain(now)
	// One that hangs lets the others pass.
	u.due = now.Add(pause << min(u.late+u.busy-1, 3))
	return max(u.due.Sub(now), time.Millisecond)
}

func (f *flow) leaveOpen(c *call, now time.Time) *unsettled {
	if len(f.open) == 0 {
		f.pace.start(c.began)
	}
	u := &unsettled{first: c.began, due: now, prompt: f.prompt}
	f.open[c.name] = u
	return u
}

// afterAnswer: the driver has done with the object.
func (f *flow) afterAnswer(c *call, v verdict, now time.Time) {
	took := now.Sub(c.began)
	if c.again == nil {
		if v.ok {
			f.limit.grow(took, now, c.held)
			f.prompt++
			if c.began.After(f.lastPrompt) {
				f.lastPrompt = c.began
			}
		}
		return
	}
	delete(f.open, c.name)
	worked := f.pace.found(took, now)
	switch {
	case worked && c.again.clean:
		// It had to begin anew: the deadline had cut off real work.
		f.limit.shrink(c.began, now, fewest)
	case v.ok:
		f.limit.recover(now)
	}
	f.pace.window = min(f.pace.window, f.limit.now())
}

// sweep forgets what nobody asks for any more.
func (f *flow) sweep(now time.Time) {
	for name, u := range f.open {
		if !u.out && !u.waiting && now.Sub(u.due) > 2*f.pace.patience {
			delete(f.open, name)
		}
	}
}

func (f *flow) isIdle(now time.Time) bool {
	f.sweep(now)
	return f.running == 0 && len(f.fresh) == 0 && len(f.again) == 0 && len(f.open) == 0
}
