// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
)

// Store is the read side of a cache of one kind. What it returns is shared: never change it, not the
// slices and maps inside it either.
//
// It also remembers the results of our own writes until the watch has caught up with them, so that an
// event queued before a write does not make a room do the same work again with the driver. Resource
// versions are compared, so the memory can never hide what somebody else wrote later.
type Store[T Object] struct {
	indexer cache.Indexer

	mu      sync.Mutex
	assumed map[Key]T
	// seen is the newest version that the watch has shown of any object of the kind. Versions grow across
	// objects, so an own write that is not newer is in the cache by now, or gone again.
	seen string
}

// Index computes the values under which an object can be found.
type Index[T Object] func(T) []string

// NewStore makes a store that is filled by hand, for tests; real ones belong to an Informer.
func NewStore[T Object](indexes map[string]Index[T]) *Store[T] {
	return storeOver[T](cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexersOf(indexes)))
}

func storeOver[T Object](indexer cache.Indexer) *Store[T] {
	return &Store[T]{indexer: indexer, assumed: map[Key]T{}}
}

func indexersOf[T Object](indexes map[string]Index[T]) cache.Indexers {
	indexers := cache.Indexers{}
	for name, index := range indexes {
		indexers[name] = func(obj any) ([]string, error) {
			typed, ok := obj.(T)
			if !ok {
				return nil, nil
			}
			return index(typed), nil
		}
	}
	return indexers
}

// Lookup finds an object by its key.
func (s *Store[T]) Lookup(key Key) (T, bool) {
	var none T
	found, exists, err := s.indexer.GetByKey(keyString(key))
	cached, ok := found.(T)
	ok = ok && err == nil && exists

	s.mu.Lock()
	defer s.mu.Unlock()
	own, assumed := s.assumed[key]
	if assumed && (!s.isAhead(own) || ok && !isNewer(own, cached)) {
		delete(s.assumed, key)
		assumed = false
	}
	switch {
	case assumed:
		return own, true
	case ok:
		return cached, true
	}
	return none, false
}

// ByIndex lists the objects under a value of an index, as the watch has seen them.
func (s *Store[T]) ByIndex(index, value string) []T {
	found, err := s.indexer.ByIndex(index, value)
	if err != nil {
		panic("kube: " + err.Error()) // only for an index that was never declared
	}
	return s.current(found)
}

// All lists every object.
func (s *Store[T]) All() []T { return s.current(s.indexer.List()) }

func (s *Store[T]) current(found []any) []T {
	objects := make([]T, 0, len(found))
	for _, f := range found {
		typed, ok := f.(T)
		if !ok {
			continue
		}
		if newer, ok := s.Lookup(KeyOf(typed)); ok {
			typed = newer
		}
		objects = append(objects, typed)
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

// Seen tells the store that the watch has shown an object, after the cache has taken it in.
func (s *Store[T]) Seen(shown T) {
	key := KeyOf(shown)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isAhead(shown) {
		s.seen = shown.GetResourceVersion()
	}
	if own, ok := s.assumed[key]; ok && !isNewer(own, shown) {
		delete(s.assumed, key)
	}
}

// Gone tells the store that the watch has shown the end of an object.
func (s *Store[T]) Gone(last T) {
	s.Seen(last)
	key := KeyOf(last)
	s.mu.Lock()
	defer s.mu.Unlock()
	// A namesake that we made since stays. An end that the watch missed and a list found comes with an
	// old version, so the UID decides.
	if own, ok := s.assumed[key]; ok && own.GetUID() == last.GetUID() {
		delete(s.assumed, key)
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

// Indexer is the cache underneath, for whoever fills it.
func (s *Store[T]) Indexer() cache.Indexer { return s.indexer }

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
