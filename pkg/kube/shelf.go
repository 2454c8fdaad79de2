// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"hash/maphash"
	"iter"
	"maps"
	"slices"
	"sync"
	"unique"
)

// shelf holds the objects of one kind and finds them by index. Those of which a cluster has tens of
// thousands can lie there packed: a claim takes a fifth then of what its struct and its maps
// take, and the garbage collector has nothing to look into. Who takes one out unpacks a copy.
type shelf[T Object] struct {
	indexes map[string]Index[T]
	packs   bool

	mu    sync.RWMutex
	items map[Key]*item[T]
	// filed has the items by index and by the hash of the value, whose texts would take as much as what they
	// are values of. There are few under most values, and one under many.
	filed map[string]map[uint64][]*item[T]
	seed  maphash.Seed
}

// item is one object, whole or packed.
type item[T Object] struct {
	key    Key
	whole  T
	packed []byte
}

func newShelf[T Object](indexes map[string]Index[T], packs bool) *shelf[T] {
	s := &shelf[T]{
		indexes: indexes, packs: packs, items: map[Key]*item[T]{}, filed: map[string]map[uint64][]*item[T]{}, seed: maphash.MakeSeed(),
	}
	for name := range indexes {
		s.filed[name] = map[uint64][]*item[T]{}
	}
	return s
}

// pack makes the item of an object. What cannot be packed is kept whole.
func (s *shelf[T]) pack(obj T) *item[T] {
	key := KeyOf(obj)
	key.Namespace = unique.Make(key.Namespace).Value() // thousands of objects share it
	if s.packs {
		if data, err := encode(obj); err == nil {
			return &item[T]{key: key, packed: data}
		}
	}
	return &item[T]{key: key, whole: obj}
}

// unpack gives the object of an item.
func unpack[T Object](i item[T]) T {
	if i.packed == nil {
		return i.whole
	}
	obj := ResourceOf[T]().newObject()
	if err := decode(i.packed, obj); err != nil {
		// These bytes never left the process. To say that there is no such object would be a lie that
		// deletes data.
		panic(fmt.Sprintf("kube: unpacking %v: %v", i.key, err))
	}
	return obj.(T)
}

// put takes in an item, whose object the caller has at hand, and gives what it replaces.
func (s *shelf[T]) put(next *item[T], obj T) (before T, replaced bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept, replaced := s.items[next.key]
	if replaced {
		before = unpack(*kept)
		kept.whole, kept.packed = next.whole, next.packed
	} else {
		kept = next
		s.items[next.key] = next
	}
	for name, index := range s.indexes {
		var old []uint64
		if replaced {
			old = s.hashes(index(before))
		}
		s.refile(name, kept, old, s.hashes(index(obj)))
	}
	return before, replaced
}

// remove gives what it has removed.
func (s *shelf[T]) remove(key Key) (before T, removed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept, removed := s.items[key]
	if !removed {
		return before, false
	}
	before = unpack(*kept)
	delete(s.items, key)
	for name, index := range s.indexes {
		s.refile(name, kept, s.hashes(index(before)), nil)
	}
	return before, true
}

func (s *shelf[T]) hashes(values []string) []uint64 {
	hashes := make([]uint64, 0, len(values))
	for _, value := range values {
		hashes = append(hashes, maphash.String(s.seed, value))
	}
	return hashes
}

func (s *shelf[T]) refile(index string, kept *item[T], before, after []uint64) {
	under := s.filed[index]
	for _, value := range before {
		if slices.Contains(after, value) {
			continue
		}
		if at := slices.Index(under[value], kept); at >= 0 {
			under[value] = slices.Delete(under[value], at, at+1)
		}
		if len(under[value]) == 0 {
			delete(under, value)
		}
	}
	for i, value := range after {
		if !slices.Contains(before, value) && !slices.Contains(after[:i], value) {
			under[value] = append(under[value], kept)
		}
	}
}

func (s *shelf[T]) lookup(key Key) (obj T, ok bool) {
	s.mu.RLock()
	kept, ok := s.items[key]
	if !ok {
		s.mu.RUnlock()
		return obj, false
	}
	seen := *kept
	s.mu.RUnlock()
	return unpack(seen), true
}

func (s *shelf[T]) has(key Key) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, ok := s.items[key]
	return ok
}

// find lists what is filed under a value.
func (s *shelf[T]) find(index, value string) []T {
	hash := maphash.String(s.seed, value)
	s.mu.RLock()
	under, declared := s.filed[index]
	kept := copied(len(under[hash]), slices.Values(under[hash]))
	s.mu.RUnlock()
	if !declared {
		panic("kube: there is no index " + index)
	}
	return slices.DeleteFunc(unpackAll(kept), func(obj T) bool {
		return !slices.Contains(s.indexes[index](obj), value) // another value may have the same hash
	})
}

// list gives everything.
func (s *shelf[T]) list() []T {
	s.mu.RLock()
	kept := copied(len(s.items), maps.Values(s.items))
	s.mu.RUnlock()
	return unpackAll(kept)
}

// copied takes down what items say now, to be unpacked without the lock.
func copied[T Object](n int, items iter.Seq[*item[T]]) []item[T] {
	taken := make([]item[T], 0, n)
	for i := range items {
		taken = append(taken, *i)
	}
	return taken
}

func unpackAll[T Object](items []item[T]) []T {
	objects := make([]T, 0, len(items))
	for _, i := range items {
		objects = append(objects, unpack(i))
	}
	return objects
}

// keys lists the keys of everything.
func (s *shelf[T]) keys() []Key {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Keys(s.items))
}
