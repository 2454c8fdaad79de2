// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Store is the read side of a cache of one kind. What it returns is shared: never change it, not the
// slices and maps inside it either.
//
// It also remembers the results of our own writes until the watch has caught up with them, so that an
// event queued before a write does not make a room do the same work again with the driver. Resource
// versions are compared, so the memory can never hide what somebody else wrote later.
type Store[T Object] struct {
	shelf *shelf[T]

	mu      sync.Mutex
	assumed map[Key]T
	// ended are objects that went with writes of ours, and which the shelf still has.
	ended map[types.UID]bool
	// seen is the newest version that the watch has shown of any object of the kind. Versions grow across
	// objects, so an own write that is not newer is in the cache by now, or gone again.
	seen string
}

// Index computes the values under which an object can be found.
type Index[T Object] func(T) []string

// NewStore makes a store that Show and Drop fill; those of rooms belong to an Informer.
func NewStore[T Object](indexes map[string]Index[T]) *Store[T] {
	return storeOver(newShelf(indexes, false))
}

func storeOver[T Object](s *shelf[T]) *Store[T] {
	return &Store[T]{shelf: s, assumed: map[Key]T{}, ended: map[types.UID]bool{}}
}

// Lookup finds an object by its key.
func (s *Store[T]) Lookup(key Key) (T, bool) {
	// Own writes first: what the watch brings is put on the shelf before it is taken out of them.
	own, ahead := s.lookupOwn(key)
	cached, ok := s.shelf.lookup(key)
	switch {
	case !ahead || ok && !isNewer(own, cached):
		return cached, ok
	case ok:
		return own, true
	}
	if own, ahead = s.lookupOwn(key); ahead {
		return own, true
	}
	return s.shelf.lookup(key) // shown, or gone, in between
}

// lookupOwn finds the result of an own write that the watch has not caught up with.
func (s *Store[T]) lookupOwn(key Key) (T, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own, assumed := s.assumed[key]
	if assumed && !s.isAhead(own) {
		delete(s.assumed, key)
		assumed = false
	}
	return own, assumed
}

// ByIndex lists the objects under a value of an index, as the watch has seen them.
func (s *Store[T]) ByIndex(index, value string) []T {
	written := s.written()
	return s.current(s.shelf.find(index, value), written)
}

// All lists every object.
func (s *Store[T]) All() []T {
	written := s.written()
	return s.current(s.shelf.list(), written)
}

// written are the keys of own writes, which are few: the watch catches up within milliseconds.
func (s *Store[T]) written() map[Key]T {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.assumed) == 0 {
		return nil
	}
	return maps.Clone(s.assumed)
}

// current replaces what own writes had changed before the objects were read.
func (s *Store[T]) current(objects []T, written map[Key]T) []T {
	for i, obj := range objects {
		key := KeyOf(obj)
		if _, own := written[key]; !own {
			continue // looking up would unpack it once more
		}
		if newer, ok := s.Lookup(key); ok {
			objects[i] = newer
		}
	}
	return objects
}

// Assume remembers the result of a write of ours until the watch shows it or something newer. A result
// that the watch has overtaken already is not remembered: the object may be gone since.
func (s *Store[T]) Assume(written T) {
	key := KeyOf(written)
	if cached, ok := s.Lookup(key); ok && !isNewer(written, cached) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isAhead(written) {
		s.assumed[key] = written
	}
}

// AssumeGone remembers that an object went with a write of ours until the watch tells of it. It is still
// found meanwhile, so that nothing that is decided on finding nothing is decided early.
func (s *Store[T]) AssumeGone(last T) {
	s.mu.Lock()
	s.ended[last.GetUID()] = true
	s.mu.Unlock()
	// The watch may have been faster, and then nobody else forgets it.
	if shown, ok := s.shelf.lookup(KeyOf(last)); !ok || shown.GetUID() != last.GetUID() {
		s.mu.Lock()
		delete(s.ended, last.GetUID())
		s.mu.Unlock()
	}
}

// HasGone tells that an object which is found went with a write of ours.
func (s *Store[T]) HasGone(found T) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended[found.GetUID()]
}

// Show takes in an object that the watch shows, and gives what it replaces.
func (s *Store[T]) Show(obj T) (before T, replaced bool) { return s.show(s.shelf.pack(obj), obj) }

func (s *Store[T]) show(packed *item[T], obj T) (before T, replaced bool) {
	before, replaced = s.showAhead(packed, obj)
	s.seenUpTo(obj.GetResourceVersion())
	return before, replaced
}

// showAhead shows an object of a list that is not there whole: what the list has newer may be on a later page, so that its version
// says nothing about own writes of other objects yet.
func (s *Store[T]) showAhead(packed *item[T], obj T) (before T, replaced bool) {
	before, replaced = s.shelf.put(packed, obj)
	key := KeyOf(obj)
	s.mu.Lock()
	defer s.mu.Unlock()
	if own, ok := s.assumed[key]; ok && !isNewer(own, obj) {
		delete(s.assumed, key)
	}
	if replaced && before.GetUID() != obj.GetUID() {
		delete(s.ended, before.GetUID())
	}
	return before, replaced
}

// Drop takes out an object whose end the watch shows, in its last state as far as that is known.
func (s *Store[T]) Drop(last T) {
	s.shelf.remove(KeyOf(last))
	s.seenUpTo(last.GetResourceVersion())
	key := KeyOf(last)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ended, last.GetUID())
	// A namesake that we made since stays. An end that the watch missed and a list found comes with an
	// old version, so the UID decides.
	if own, ok := s.assumed[key]; ok && (!isNewer(own, last) || own.GetUID() == last.GetUID()) {
		delete(s.assumed, key)
	}
}

func (s *Store[T]) seenUpTo(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == "" || compare(version, s.seen) > 0 {
		s.seen = version
	}
}

// Forget drops what Assume remembers of a key: the server says that the object is gone.
func (s *Store[T]) Forget(key Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.assumed, key)
}

// isAhead tells whether an object is newer than all that the watch has shown. Nothing shown yet means
// that it may be.
func (s *Store[T]) isAhead(obj T) bool {
	return s.seen == "" || compare(obj.GetResourceVersion(), s.seen) > 0
}

func isNewer(a, b Object) bool { return compare(a.GetResourceVersion(), b.GetResourceVersion()) > 0 }

// compare orders resource versions, which are integers that grow within a resource (KEP-5504). What
// cannot be compared does not count as newer: the watch is right.
func compare(a, b string) int {
	order, err := resourceversion.CompareResourceVersion(a, b)
	if err != nil {
		return 0
	}
	return order
}

func keyString(key Key) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.Namespace + "/" + key.Name
}
