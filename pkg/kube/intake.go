// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"

	"k8s.io/client-go/tools/cache"
)

// intake is the side of an informer that the reflector fills. A streamed first list is packed as it comes
// in, so that the objects are never all there whole.
type intake[T Object] struct{ informer *Informer[T] }

var _ cache.TransformingStore = intake[cacheable]{}

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
		in.take(packed, whole)
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

// Replace implements cache.ReflectorStore. What is missing in the list has ended unseen, and is told in its
// last known state; what is as it was is no news.
func (in intake[T]) Replace(list []any, _ string) error {
	i := in.informer
	i.telling.Lock()
	defer i.telling.Unlock()
	listed := make(map[Key]bool, len(list))
	for _, obj := range list {
		packed, whole, err := in.accept(obj)
		if err != nil {
			return err
		}
		if packed == nil {
			continue
		}
		listed[packed.key] = true
		if kept, ok := i.shelf.lookup(packed.key); !ok || kept.GetResourceVersion() != whole.GetResourceVersion() {
			in.take(packed, whole)
		}
	}
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

// Transformer implements cache.TransformingStore.
func (in intake[T]) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		packed, _, err := in.accept(obj)
		if err == nil && packed == nil {
			return unwanted{}, nil
		}
		return packed, err
	}
}

// unwanted stands in a streamed first list for an object that is not kept.
type unwanted struct{}

// accept trims and packs what comes from the API server; what the transformer has packed it unpacks. Nothing is
// packed of what is not kept.
func (in intake[T]) accept(obj any) (*item[T], T, error) {
	switch o := obj.(type) {
	case *item[T]:
		return o, unpack(*o), nil
	case unwanted:
		var none T
		return nil, none, nil
	case T:
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
	var none T
	return nil, none, fmt.Errorf("keeping %s: got %T", in.informer.resource.Kind, obj)
}

func (in intake[T]) take(packed *item[T], whole T) {
	before, replaced := in.informer.show(packed, whole)
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
