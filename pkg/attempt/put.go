// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
)

var (
	errUnbegun = errors.New("the record of open attempts was not read yet")
	errStays   = errors.New("what is recorded of the volume cannot be taken off the record of open attempts without the right to write it")
)

func refuseSettling() error {
	return &RefusedError{errStays, "a role such as that in deploy/provisioner/rbac.yaml, bound to the account of the pod, grants that right; it goes on by itself then"}
}

// Put writes a document, and returns once the API server has acknowledged it: until then nothing may be
// done that it should tell of. One that is on record as it is costs nothing. When the write fails the
// document does not count; that it may have arrived all the same harms nobody, since nothing was done.
func (r *Record) Put(ctx context.Context, uid types.UID, d Document) error {
	before, err := r.want(uid, d)
	if err != nil {
		r.tellCrowd(ctx)
		return err
	}
	if err := r.commit(ctx); err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.drop(uid)
		if before != nil && r.state != foreign {
			r.put(uid, before)
		}
		r.note()
		return err
	}
	return nil
}

// want puts a document into the state that the record should have.
func (r *Record) want(uid types.UID, d Document) (before *entry, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch r.state {
	case unbegun:
		return nil, errUnbegun
	case foreign:
		return nil, ErrForeign
	case recording, unwritable:
	}
	if r.telling {
		return nil, errUnbegun // it would be written over what nobody has taken up yet
	}
	if n := d.size(); n > maxDocument && (r.entries[uid] == nil || n > maxDocument+growthBytes) {
		return nil, refuseLarge(n)
	}
	r.setAside(uid)
	before = r.entries[uid]
	to, err := r.roomFor(uid, d)
	if err != nil {
		return nil, err
	}
	r.drop(uid)
	r.put(uid, &entry{Document: d, shard: to, value: encode(d)})
	return before, nil
}

// shardOf is where a document is, or still is although it is over.
func (r *Record) shardOf(uid types.UID) (int, bool) {
	if e := r.entries[uid]; e != nil {
		return e.shard, true
	}
	for i, s := range r.shards {
		if s.has(string(uid)) {
			return i, true
		}
	}
	return 0, false
}

func (r *Record) put(key types.UID, e *entry) {
	r.entries[key] = e
	r.shards[e.shard].set(key, e)
}

func (r *Record) drop(uid types.UID) {
	e := r.entries[uid]
	if e == nil {
		return
	}
	delete(r.entries, uid)
	r.shards[e.shard].unset(uid, e)
	for i, other := range r.parked {
		if other == uid {
			r.parked = append(r.parked[:i:i], r.parked[i+1:]...)
			break
		}
	}
}

// Remove takes a document off, with the next write or after a while: what stays until then is taken up
// again by the next process, which finds that it is over.
func (r *Record) Remove(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range r.keysOf(uid) {
		if e := r.entries[key]; e != nil && !e.unread && !e.untold {
			r.drop(key)
			r.note()
		}
	}
}

// Settle takes all documents of a claim off, understood or not, and returns once the API server has acknowledged that. It
// costs nothing when there is none.
func (r *Record) Settle(ctx context.Context, uid types.UID) error {
	if err := r.AwaitBegun(ctx); err != nil {
		return err
	}
	if err := r.Check(); err != nil {
		return err
	}
	if !r.isDisowned() {
		return errOwned
	}
	if !r.leave(uid) {
		return nil
	}
	if err := r.commit(ctx); err != nil {
		return err
	}
	if r.leave(uid) {
		return refuseSettling()
	}
	return nil
}

// errOwned passes within seconds.
var errOwned = errors.New("this process has no right to write the record of open attempts, and the next one has to know that what is there may be over: it is not on the lease yet")

// isDisowned tells that nothing would be settled that the next process takes for open: without the right to write, what is over stays on record, of
// which others learn by the lease alone.
func (r *Record) isDisowned() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.options.Disown == nil || r.state != unwritable {
		return true
	}
	r.disowned = true
	return r.options.Disown()
}

// own takes that back, once nothing is on record any more that was over by then. It is called under the lock.
func (r *Record) own() {
	if r.disowned {
		r.disowned = false
		r.options.Own()
	}
}

// leave drops a document, and tells whether the server may have it all the same.
func (r *Record) leave(uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == unwritable && !r.over[uid] {
		if r.forgot = r.forgot || len(r.over) >= maxOver; !r.forgot {
			r.over[uid] = true
		}
	}
	there := false
	for _, key := range r.keysOf(uid) {
		r.drop(key)
		_, stays := r.shardOf(key)
		there = there || stays
	}
	for _, s := range r.shards {
		there = there || s.unsure
	}
	return there
}

// Sweep writes what waits to be written, and looks again at what may have been edited.
func (r *Record) Sweep(ctx context.Context) error {
	if err := r.Check(); err != nil {
		return err
	}
	if !r.isSwept() {
		if err := r.commit(ctx); err != nil {
			return err
		}
		r.isSwept()
	}
	return nil
}

// isSwept tells that there is nothing to write, or no way to. With nothing left of what was over, the process is one of those again who keep the record.
func (r *Record) isSwept() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != recording {
		return true
	}
	for _, s := range r.shards {
		if len(s.dirty) > 0 || s.unsure || s.stale {
			return false
		}
	}
	r.own()
	return true
}

// note wakes who sweeps. It is called under the lock.
func (r *Record) note() {
	select {
	case r.leaving <- struct{}{}:
	default:
	}
}
