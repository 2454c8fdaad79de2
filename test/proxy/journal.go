// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"fmt"
	"sync"
)

// journal is a log of calls that can be waited on. An entry is there from the arrival of its call on.
type journal[C any] struct {
	mu      sync.Mutex
	entries []*C
	changed chan struct{}
}

func newJournal[C any]() *journal[C] { return &journal[C]{changed: make(chan struct{})} }

func (j *journal[C]) add(call C) *C {
	j.mu.Lock()
	defer j.mu.Unlock()
	entry := &call
	j.entries = append(j.entries, entry)
	j.change()
	return entry
}

func (j *journal[C]) edit(entry *C, change func(*C)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change(entry)
	j.change()
}

func (j *journal[C]) change() {
	close(j.changed)
	j.changed = make(chan struct{})
}

func (j *journal[C]) list() []C {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := make([]C, 0, len(j.entries))
	for _, entry := range j.entries {
		all = append(all, *entry)
	}
	return all
}

func (j *journal[C]) clear() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = nil
}

// await looks at each entry whenever one changes.
func (j *journal[C]) await(ctx context.Context, isWanted func(C) bool) (C, error) {
	for {
		j.mu.Lock()
		changed := j.changed
		for _, entry := range j.entries {
			if isWanted(*entry) {
				found := *entry
				j.mu.Unlock()
				return found, nil
			}
		}
		count := len(j.entries)
		j.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			var none C
			return none, fmt.Errorf("awaiting a call, %d came that were not meant: %w", count, ctx.Err())
		}
	}
}
