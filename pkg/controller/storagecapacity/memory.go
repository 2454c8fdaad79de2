// SPDX-License-Identifier: Apache-2.0

package storagecapacity

import (
	"sync"
	"time"

	"github.com/csi-tandem/csi-tandem/pkg/capacity"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
)

// memory is what the room knows beside the caches. All of it may be lost with the process. Nothing is asked
// of others while its lock is held: the index of the topology calls in here under its own.
type memory struct {
	mu       sync.Mutex
	begun    bool
	segments map[string]topology.Segment
	classes  table
	asks     map[reconcile.Key]*ask
	// made are objects that we have made and the watch has not shown yet: no index finds them.
	made map[capacity.Slot]kube.Key
	// spread is when all segments of a group were looked at last.
	spread  map[string]time.Time
	failing int
	told    time.Time
	// lack is what was missing when it was last told, and lackSought that it was looked for at all.
	lack       string
	lackSought bool
}

// ask is the history of one question.
type ask struct {
	at time.Time
	// since is how old the answer is: when the question was begun that was answered last, or the first one of all.
	since    time.Time
	room     *capacity.Room
	failures int
	// urgent tells that somebody waits for the answer.
	urgent bool
}

func newMemory() *memory {
	return &memory{
		segments: map[string]topology.Segment{}, classes: newTable(capacity.Rules{}, nil),
		asks: map[reconcile.Key]*ask{}, made: map[capacity.Slot]kube.Key{}, spread: map[string]time.Time{},
	}
}

// start ends the time in which changes are only noted, and gives what they have led to.
func (m *memory) start() table {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begun = true
	return m.classes
}

func (m *memory) hasBegun() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.begun
}

// setClasses puts a new table in place, and gives the one before.
func (m *memory) setClasses(next table) (before table) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, m.classes = m.classes, next
	for id := range m.spread {
		if _, ok := next.groups[id]; !ok {
			delete(m.spread, id)
		}
	}
	return before
}

func (m *memory) setSegment(text string, segment topology.Segment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.segments[text] = segment
}

func (m *memory) removeSegment(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.segments, text)
}

// known gives what is there now; the table is never changed, and the number of segments is for counting.
func (m *memory) known() (classes table, segments int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.classes, len(m.segments)
}

// keysOf are the questions of a group, one for each segment.
func (m *memory) keysOf(group string) []reconcile.Key {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.classes.groups[group]; !ok {
		return nil
	}
	keys := make([]reconcile.Key, 0, len(m.segments))
	for text := range m.segments {
		keys = append(keys, askKey(group, text))
	}
	sortKeys(keys)
	return keys
}

// keysAt are the questions about a segment, one for each group; none when there is no such segment.
func (m *memory) keysAt(segment string) []reconcile.Key {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.segments[segment]; !ok {
		return nil
	}
	keys := make([]reconcile.Key, 0, len(m.classes.groups))
	for id := range m.classes.groups {
		keys = append(keys, askKey(id, segment))
	}
	sortKeys(keys)
	return keys
}

// input is what is to be known of a slot, apart from its objects.
func (m *memory) input(slot capacity.Slot) (in capacity.Input, key reconcile.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	segment, hasSegment := m.segments[slot.Segment]
	group, hasClass := m.classes.groupOf[slot.Class]
	in = capacity.Input{Class: slot.Class, Segment: segment, IsWanted: hasSegment && hasClass}
	key = askKey(group, slot.Segment)
	if a := m.asks[key]; a != nil && in.IsWanted {
		in.Room = a.room
	}
	return in, key
}

func (m *memory) lookup(key reconcile.Key) (g group, segment topology.Segment, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	g, hasGroup := m.classes.groups[key.Namespace]
	segment, hasSegment := m.segments[key.Name]
	return g, segment, hasGroup && hasSegment
}

// forget drops what is known of a question that is not asked any more.
func (m *memory) forget(key reconcile.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.asks[key]; a != nil && a.failures > 0 {
		m.failing--
	}
	delete(m.asks, key)
}

// remember notes an object that we have made.
func (m *memory) remember(slot capacity.Slot, key kube.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made[slot] = key
}

// recall gives the object of a slot that we have made.
func (m *memory) recall(slot capacity.Slot) (kube.Key, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key, ok := m.made[slot]
	return key, ok
}

// shown forgets an object that we have made: from now on the indexes find it, or it is gone.
func (m *memory) shown(slot capacity.Slot, key kube.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.made[slot] == key {
		delete(m.made, slot)
	}
}
