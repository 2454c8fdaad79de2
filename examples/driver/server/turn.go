// SPDX-License-Identifier: Apache-2.0

package server

import "sync"

// turns lets the node calls about one volume work one after another, at whatever paths they are: what one of them finds out
// about the volume's device and its mounts must not be undone by another before it acts upon it.
type turns struct {
	mu   sync.Mutex
	open map[string]*turn
}

// turn belongs to one volume while somebody has it or waits for it.
type turn struct {
	sync.Mutex
	interested int
}

// take waits for the turn; the returned function gives it to the next.
func (t *turns) take(id string) func() {
	t.mu.Lock()
	if t.open == nil {
		t.open = map[string]*turn{}
	}
	own := t.open[id]
	if own == nil {
		own = &turn{}
		t.open[id] = own
	}
	own.interested++
	t.mu.Unlock()
	own.Lock()
	return func() {
		own.Unlock()
		t.mu.Lock()
		defer t.mu.Unlock()
		if own.interested--; own.interested == 0 {
			delete(t.open, id)
		}
	}
}
