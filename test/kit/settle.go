// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
)

// task is a key of a room.
type task struct {
	room *Room
	key  reconcile.Key
}

type timer struct {
	task
	due time.Time
}

// Settle runs the rooms and actors until nothing is left to do: no key waits, the caches have seen all,
// and no timer ends within the horizon. It ends early when a cut ends the program.
func (h *Harness) Settle() {
	h.T.Helper()
	deadline := h.Clock.Now().Add(h.Horizon)
	for range h.MaxTurns {
		h.drain()
		switch {
		case h.HasEnded():
			return
		case len(h.ready) > 0:
			next := h.ready[0]
			h.ready = h.ready[1:]
			h.turn(next)
			h.Stores.step()
		case h.Stores.isBehind():
			h.Stores.step()
		case !h.wake(deadline):
			return
		}
	}
	h.T.Fatalf("not quiet after %d turns; the last ones were:\n%s", h.MaxTurns, lastLines(h.trace, 40))
}

// Enqueue asks a room to look at a key.
func (h *Harness) Enqueue(room string, key reconcile.Key) {
	h.T.Helper()
	for _, r := range slices.Concat(h.rooms, h.actors) {
		if r.Name == room {
			h.enqueue(task{r, key})
			return
		}
	}
	h.T.Fatalf("no room is called %q", room)
}

func (h *Harness) enqueue(t task) {
	if !slices.Contains(h.ready, t) {
		h.ready = append(h.ready, t)
	}
}

func (h *Harness) enqueueFor(room *Room, change Change) {
	if room.Keys == nil {
		return
	}
	for _, key := range room.Keys(change) {
		h.enqueue(task{room, key})
	}
}

// drain hands new changes to those that listen.
func (h *Harness) drain() {
	h.mu.Lock()
	changes := h.changes
	h.changes = nil
	h.mu.Unlock()
	for _, o := range changes {
		rooms := h.rooms
		if o.toActor {
			rooms = h.actors
		}
		for _, room := range rooms {
			h.enqueueFor(room, o.change)
		}
	}
}

// turn lets a room work on a key, and does what the queue would do with the result.
func (h *Harness) turn(t task) {
	ctx := h.Ctx
	if slices.Contains(h.actors, t.room) {
		ctx = h.T.Context() // actors do not die with the program
	}
	result, err := t.room.Reconcile(ctx, t.key)
	line := fmt.Sprintf("%s %s %s", h.Clock.Now().Format(time.TimeOnly), t.room.Name, t.key)
	switch {
	case err == nil && result.After > 0:
		line += " → again in " + result.After.String()
	case err != nil:
		line += " → " + err.Error()
		h.errors = append(h.errors, fmt.Sprintf("%s %s: %v", t.room.Name, t.key, err))
	}
	h.trace = append(h.trace, line)
	switch {
	case err == nil:
		delete(h.failures, t)
		if result.After > 0 {
			h.later(t, result.After)
		}
	case fault.IsTerminal(err):
		delete(h.failures, t)
	default:
		h.retry(t, err)
	}
}

func (h *Harness) retry(t task, err error) {
	after := h.RetryMax
	if n := h.failures[t]; n < 30 {
		after = min(h.RetryStart<<n, h.RetryMax)
	}
	h.failures[t]++
	if asked, ok := fault.RetryDelay(err); ok {
		after = asked
	}
	h.later(t, after)
}

// later sets a timer; of two for one key the earlier stands, as in the real queue.
func (h *Harness) later(t task, after time.Duration) {
	due := h.Clock.Now().Add(after)
	for i := range h.timers {
		if h.timers[i].task == t {
			if due.Before(h.timers[i].due) {
				h.timers[i].due = due
			}
			return
		}
	}
	h.timers = append(h.timers, timer{t, due})
}

// wake steps the clock to the next timer; false means that there is none before the deadline.
func (h *Harness) wake(deadline time.Time) bool {
	if len(h.timers) == 0 {
		return false
	}
	next := slices.MinFunc(h.timers, func(a, b timer) int { return a.due.Compare(b.due) })
	if next.due.After(deadline) {
		return false
	}
	if next.due.After(h.Clock.Now()) {
		h.Clock.SetTime(next.due)
	}
	h.timers = slices.DeleteFunc(h.timers, func(t timer) bool {
		if t.due.After(h.Clock.Now()) {
			return false
		}
		h.enqueue(t.task)
		return true
	})
	return true
}

func feedCSINode(index *topology.Index, change Change) {
	if change.New == nil {
		index.RemoveCSINode(change.Old.GetName())
		return
	}
	node, ok := change.New.(*storagev1.CSINode)
	if !ok {
		return
	}
	for _, driver := range node.Spec.Drivers {
		if driver.Name == DriverName {
			index.SetDriverKeys(node.Name, slices.Clone(driver.TopologyKeys))
			return
		}
	}
	index.RemoveDriver(node.Name)
}

func lastLines(lines []string, n int) string {
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
