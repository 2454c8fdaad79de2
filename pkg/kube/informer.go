// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
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
	// Keep tells the objects that are kept at all; nil keeps every one. It sees them whole. One that is not kept any
	// more counts as deleted, in the state that it has then.
	Keep func(T) bool
	// Packed keeps the objects in a short form, for kinds of which there are thousands. What is looked up is
	// unpacked each time.
	Packed bool
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
//
// It stands directly behind client-go's reflector, which lists and watches: the shared informers there keep
// whole objects, indexes of twice their own size, and a queue and two goroutines for each handler.
type Informer[T Object] struct {
	*Store[T]

	resource  Resource
	namespace string
	trim      func(T)
	keep      func(T) bool
	listWatch *cache.ListWatch
	resync    time.Duration
	synced    atomic.Bool
	lastErr   atomic.Pointer[error]

	// telling is held while a change is taken in and told, so that all handlers hear the same order.
	telling  sync.Mutex
	handlers []func(Change[T])
}

// NewInformer makes an informer; nothing happens before Run.
func NewInformer[T Object](c Client, options InformerOptions[T]) *Informer[T] {
	i := &Informer[T]{
		Store: storeOver(newShelf(options.Indexes, options.Packed)), resource: ResourceOf[T](), namespace: options.Namespace,
		trim: options.Trim, keep: options.Keep, resync: options.Resync,
	}
	narrow := func(o *metav1.ListOptions) {
		o.LabelSelector, o.FieldSelector = options.LabelSelector, options.FieldSelector
	}
	pages := lister[T]{client: c, informer: i, narrow: narrow}
	i.listWatch = &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			list, err := pages.list(ctx)
			i.note(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			if o.SendInitialEvents != nil {
				return nil, errors.ErrUnsupported // then it asks for a list, which comes in pages
			}
			narrow(&o)
			w, err := c.Watch(ctx, i.resource, options.Namespace, o)
			i.note(err)
			return w, err
		},
	}
	return i
}

func (i *Informer[T]) note(err error) {
	if err != nil {
		i.lastErr.Store(&err)
	}
}

// OnChange adds a handler, before Run. It must not block: it puts keys into queues.
func (i *Informer[T]) OnChange(handle func(Change[T])) {
	i.telling.Lock()
	defer i.telling.Unlock()
	i.handlers = append(i.handlers, handle)
}

func (i *Informer[T]) tell(change Change[T]) {
	for _, handle := range i.handlers {
		handle(change)
	}
}

// Run watches until the context ends.
func (i *Informer[T]) Run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	cache.NewReflectorWithOptions(i.listWatch, i.resource.New(), intake[T]{i}, cache.ReflectorOptions{
		Logger: &logger, Name: "informer", TypeDescription: i.resource.Kind, ResyncPeriod: i.resync,
	}).RunWithContext(ctx)
}

// HasSynced tells that the first list is in the store, and the handlers know.
func (i *Informer[T]) HasSynced() bool { return i.synced.Load() }

// Resource is what is watched.
func (i *Informer[T]) Resource() Resource { return i.resource }

// Namespace is where it is watched; empty means everywhere.
func (i *Informer[T]) Namespace() string { return i.namespace }

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
		if isUnserved(*err) {
			return fmt.Sprintf("the cluster does not have %s: its CustomResourceDefinition is missing, or too old to serve %s", i.resource.GroupResource(), i.resource.Version)
		}
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
