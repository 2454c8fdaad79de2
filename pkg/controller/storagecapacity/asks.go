// SPDX-License-Identifier: Apache-2.0

package storagecapacity

import (
	"time"

	"github.com/csi-tandem/csi-tandem/pkg/capacity"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
)

// Lanes of questions.
const (
	laneUsual   = "usual"
	laneUrgent  = "urgent"
	laneFailing = "failing"
)

// of finds or begins the history of a question. The lock is held.
func (m *memory) of(key reconcile.Key) *ask {
	a := m.asks[key]
	if a == nil {
		a = &ask{}
		m.asks[key] = a
	}
	return a
}

// hurry notes that somebody waits for an answer, if there is such a question.
func (m *memory) hurry(key reconcile.Key) bool {
	if _, _, ok := m.lookup(key); !ok {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(key).urgent = true
	return true
}

func (m *memory) lane(key reconcile.Key) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.asks[key]
	switch {
	case a == nil:
		return laneUsual
	case a.failures > 0:
		return laneFailing
	case a.urgent:
		return laneUrgent
	}
	return laneUsual
}

// wait is how long a question has to wait after the last one like it: a burst of reasons is one reason, and
// a driver that fails is left alone for a while.
func (m *memory) wait(key reconcile.Key, now time.Time, p pace) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.asks[key]
	if a == nil || a.at.IsZero() {
		return 0
	}
	return a.at.Add(p.between(a.failures)).Sub(now)
}

// begin notes that the driver is being asked, and gives back the time.
func (m *memory) begin(key reconcile.Key, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.of(key)
	a.at, a.urgent = now, false
	if a.since.IsZero() {
		a.since = now
	}
	return now
}

func (m *memory) succeeded(key reconcile.Key, room capacity.Room, asked time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.of(key)
	if a.failures > 0 {
		m.failing--
	}
	a.failures, a.room, a.since = 0, &room, asked
}

// setback is what is known after a question has failed.
type setback struct {
	failures, failing int
	// isNews tells that it is worth a line in the log.
	isNews bool
}

// tellAgain is how soon another failure is told. One line stands for all segments: an outage of the driver
// concerns every one of them.
const tellAgain = 10 * time.Second

// failed notes that a question has failed. The time counts from the end of the call, which may have hung.
func (m *memory) failed(key reconcile.Key, now time.Time) setback {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.of(key)
	if a.failures == 0 {
		m.failing++
	}
	a.failures++
	a.at = now
	s := setback{failures: a.failures, failing: m.failing, isNews: m.told.IsZero() || now.Sub(m.told) >= tellAgain}
	if s.isNews {
		m.told = now
	}
	return s
}

// maySpread tells whether all segments of a group may be looked at now, or how long that has to wait.
func (m *memory) maySpread(group string, now time.Time, p pace) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, ok := m.spread[group]
	if wait := last.Add(p.betweenAll(len(m.segments))).Sub(now); ok && wait > 0 {
		return wait
	}
	m.spread[group] = now
	return 0
}
