// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"

	"k8s.io/client-go/tools/cache"
)

// intake is the side of an informer that the reflector fills.
type intake[T Object] struct{ informer *Informer[T] }

var _ cache.ReflectorStore = intake[cacheable]{}

// cacheable stands for any kind.
type cacheable = *ReferenceGrant

// Add implements cache.ReflectorStore.
func (in intake[T]) Add(obj any) error {
	packed, whole, err := in.accept(obj)
	if err != nil {
		return err
	}
	in.informer.telling.Lock()
	defer in.informer.telling.Unlock()
	switch {
	case packed != nil:
		before, replaced := in.informer.show(packed, whole)
		in.tell(before, replaced, whole)
	case in.informer.shelf.has(KeyOf(whole)):
		in.drop(whole)
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (in intake[T]) Update(obj any) error { return in.Add(obj) }

// Delete implements cache.ReflectorStore.
func (in intake[T]) Delete(obj any) error {
	_, last, err := in.accept(obj)
	if err != nil {
		return err
	}
	in.informer.telling.Lock()
	defer in.informer.telling.Unlock()
	if in.informer.keep != nil && !in.informer.shelf.has(KeyOf(last)) {
		in.informer.Drop(last) // nobody was told of it, or its end was told when it was of no more use
		return nil
	}
	in.drop(last)
	return nil
}

// see takes in what a list shows; what is as it was is no news.
func (in intake[T]) see(obj any) (key Key, kept bool, err error) {
	packed, whole, err := in.accept(obj)
	if packed == nil {
		return key, false, err // and Replace tells its end, if it was kept before
	}
	in.informer.telling.Lock()
	defer in.informer.telling.Unlock()
	if known, ok := in.informer.shelf.lookup(packed.key); !ok || known.GetResourceVersion() != whole.GetResourceVersion() {
		before, replaced := in.informer.showAhead(packed, whole)
		in.tell(before, replaced, whole)
	}
	return packed.key, true, nil
}

// Replace implements cache.ReflectorStore, after all of a list has been put away. What is missing in it has ended unseen,
// and is told in its last known state.
func (in intake[T]) Replace(list []any, version string) error {
	i := in.informer
	listed := make(map[Key]bool, len(list))
	for _, obj := range list {
		m, ok := obj.(mark)
		if !ok {
			return fmt.Errorf("keeping a list of %s: got %T", i.resource.Kind, obj)
		}
		listed[Key(m)] = true
	}
	i.telling.Lock()
	defer i.telling.Unlock()
	i.seenUpTo(version) // all of it is on the shelf by now
	for _, key := range i.shelf.keys() {
		if listed[key] {
			continue
		}
		if last, ok := i.shelf.lookup(key); ok {
			in.drop(last)
		}
	}
	i.synced.Store(true)
	return nil
}

// Resync implements cache.ReflectorStore: everything is told again.
func (in intake[T]) Resync() error {
	i := in.informer
	for _, key := range i.shelf.keys() {
		i.telling.Lock() // one by one, to let news through
		if obj, ok := i.shelf.lookup(key); ok {
			i.tell(Change[T]{Old: obj, New: obj})
		}
		i.telling.Unlock()
	}
	return nil
}

// accept trims and packs what comes from the API server. Nothing is packed of what is not kept.
func (in intake[T]) accept(obj any) (*item[T], T, error) {
	o, ok := obj.(T)
	if !ok {
		return nil, o, fmt.Errorf("keeping %s: got %T", in.informer.resource.Kind, obj)
	}
	o.SetManagedFields(nil)
	wanted := in.informer.keep == nil || in.informer.keep(o)
	if in.informer.trim != nil {
		in.informer.trim(o)
	}
	if !wanted {
		return nil, o, nil
	}
	return in.informer.shelf.pack(o), o, nil
}

func (in intake[T]) tell(before T, replaced bool, whole T) {
	change := Change[T]{New: whole}
	if replaced {
		change.Old = before
	}
	in.informer.tell(change)
}

func (in intake[T]) drop(last T) {
	in.informer.Drop(last)
	in.informer.tell(Change[T]{Old: last, Deleted: true})
}
