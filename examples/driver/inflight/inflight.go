// SPDX-License-Identifier: Apache-2.0

// Package inflight owns the table of operations that are being worked on, so
// that a second call for the same volume or snapshot is refused instead of
// racing with the first.
//
// It must not know what an operation does; a key is only a string.
//
// On the walk of one CSI call it stands twice: before the server acts, so that
// a call held up by a script counts as open, and in the backend, which lets go
// of its lock while it copies data.
package inflight

import "sync"

// Table remembers the keys of open operations. The zero value is ready to use.
type Table struct {
	mu   sync.Mutex
	open map[string]struct{}
}

// Begin claims key. It reports false when the key is taken; otherwise the
// returned function gives the key back and must be called exactly once.
func (t *Table) Begin(key string) (func(), bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, taken := t.open[key]; taken {
		return nil, false
	}
	if t.open == nil {
		t.open = map[string]struct{}{}
	}
	t.open[key] = struct{}{}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.open, key)
	}, true
}
