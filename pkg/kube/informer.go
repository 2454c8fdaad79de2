// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// InformerOptions says what of a kind is kept.
type InformerOptions[T Object] struct {
	// Namespace and the selectors narrow the watch; empty means all.
	Namespace     string
	LabelSelector string
	FieldSelector string
	// Resync repeats every object to the handlers at this period; 0 never.
	Resync time.Duration
	// Indexes are the ways to find objects other than by key.
	Indexes map[string]Index[T]
	// Trim removes what nobody reads from an object before it is kept. Managed fields always go.
	Trim func(T)
}

// Change is one event of a watch. Old is the zero value for a new object, New for a deleted one; both
// are set for an update. A resync has two equal resource versions.
type Change[T Object] struct {
	Old, New T
	// Deleted is set when New is missing. Old may then be the last state that was seen, not the last
	// there was.
	Deleted bool
}

// Object is the newest state that the change knows.
func (c Change[T]) Object() T {
	if c.Deleted {
		return c.Old
	}
	return c.New
}

// Informer keeps a Store up to date and tells what changes.
type Informer[T Object] struct {
	*Store[T]

	resource Resource
	shared   cache.SharedIndexInformer
	lastErr  atomic.Pointer[error]
}

// NewInformer makes an informer; nothing happens before Run.
func NewInformer[T Object](c Client, options InformerOptions[T]) *Informer[T] {
	r := ResourceOf[T]()
	narrow := func(o *metav1.ListOptions) {
		o.LabelSelector, o.FieldSelector = options.LabelSelector, options.FieldSelector
	}
	listWatch := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			narrow(&o)
			return c.List(ctx, r, options.Namespace, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			narrow(&o)
			return c.Watch(ctx, r, options.Namespace, o)
		},
	}
	shared := cache.NewSharedIndexInformerWithOptions(listWatch, r.New(), cache.SharedIndexInformerOptions{
		ResyncPeriod: options.Resync, Indexers: indexersOf(options.Indexes), ObjectDescription: r.Kind,
	})
	i := &Informer[T]{Store: storeOver[T](shared.GetIndexer()), resource: r, shared: shared}
	i.prepare(options.Trim)
	return i
}

func (i *Informer[T]) prepare(trim func(T)) {
	// Both setters fail only on an informer that has started.
	_ = i.shared.SetTransform(func(obj any) (any, error) {
		if typed, ok := obj.(T); ok {
			typed.SetManagedFields(nil)
			if trim != nil {
				trim(typed)
			}
		}
		return obj, nil
	})
	_ = i.shared.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		i.lastErr.Store(&err)
		cache.DefaultWatchErrorHandler(ctx, r, err)
	})
	i.OnChange(func(change Change[T]) {
		if change.Deleted {
			i.Gone(change.Old)
			return
		}
		i.Seen(change.New)
	})
}

// OnChange adds a handler. It must not block: it puts keys into queues.
func (i *Informer[T]) OnChange(handle func(Change[T])) {
	_, _ = i.shared.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if typed, ok := obj.(T); ok {
				handle(Change[T]{New: typed})
			}
		},
		UpdateFunc: func(before, after any) {
			old, okOld := before.(T)
			typed, ok := after.(T)
			if ok && okOld {
				handle(Change[T]{Old: old, New: typed})
			}
		},
		DeleteFunc: func(obj any) {
			// A deletion that the watch missed arrives as a tombstone with the last known state.
			if lost, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = lost.Obj
			}
			if typed, ok := obj.(T); ok {
				handle(Change[T]{Old: typed, Deleted: true})
			}
		},
	})
}

// Run watches until the context ends.
func (i *Informer[T]) Run(ctx context.Context) { i.shared.RunWithContext(ctx) }

// HasSynced tells that the first list is in the store.
func (i *Informer[T]) HasSynced() bool { return i.shared.HasSynced() }

// Resource is what is watched.
func (i *Informer[T]) Resource() Resource { return i.resource }

// Failure is the last error of an informer that has not synced yet; nil while its first list is on its way.
func (i *Informer[T]) Failure() error {
	if err := i.lastErr.Load(); err != nil && !i.HasSynced() {
		return *err
	}
	return nil
}

// Explain says why the informer has not synced yet, as far as it knows.
func (i *Informer[T]) Explain() string {
	if i.HasSynced() {
		return ""
	}
	if err := i.lastErr.Load(); err != nil {
		return fmt.Sprintf("cannot list or watch %s: %v", i.resource.GroupResource(), *err)
	}
	return fmt.Sprintf("waiting for the first list of %s", i.resource.GroupResource())
}

// Runner is what the runtime needs of an informer of any kind.
type Runner interface {
	Run(ctx context.Context)
	HasSynced() bool
	Explain() string
}
