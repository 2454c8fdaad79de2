// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// event is one change that the server stored.
type event struct {
	version  int64
	kind     watch.EventType
	resource kube.Resource
	key      kube.Key
	old, obj raw
}

// Change is one change of one object, as the caches see it. Old is nil for a new object, New for one
// that is gone.
type Change struct {
	Resource kube.Resource
	Old, New kube.Object
}

func (a *API) publish(e event) {
	a.history = append(a.history, e)
	close(a.changed)
	a.changed = make(chan struct{})
	if len(a.listeners) == 0 {
		return
	}
	change := Change{Resource: e.resource}
	if e.old != nil {
		change.Old = typed(e.resource, e.old)
	}
	if e.kind == watch.Deleted {
		change.Old = typed(e.resource, e.obj)
	} else {
		change.New = typed(e.resource, e.obj)
	}
	for _, l := range a.listeners {
		l.tell(change)
	}
}

type listener struct{ tell func(Change) }

// typed makes a fresh object; everything stored was made of one, so it always decodes.
func typed(r kube.Resource, from raw) kube.Object {
	obj := r.New()
	if err := decode(from, obj); err != nil {
		panic(fmt.Sprintf("kit: a stored %s does not decode: %v", r.Kind, err))
	}
	return obj
}

// listen tells of every change from now on, after telling what there is, until stop is called. It must
// not call the API.
func (a *API) listen(tell func(Change)) (stop func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, at := range a.sortedKeys("") {
		r := resourceNamed(at.plural)
		tell(Change{Resource: r, New: typed(r, a.objects[at])})
	}
	l := &listener{tell}
	a.listeners = append(a.listeners, l)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.listeners = slices.DeleteFunc(a.listeners, func(x *listener) bool { return x == l })
	}
}

// sortedKeys are the keys of one resource, or of all, in a fixed order.
func (a *API) sortedKeys(plural string) []objectKey {
	var keys []objectKey
	for at := range a.objects {
		if plural == "" || at.plural == plural {
			keys = append(keys, at)
		}
	}
	slices.SortFunc(keys, func(x, y objectKey) int {
		return strings.Compare(x.plural+" "+x.key.String(), y.plural+" "+y.key.String())
	})
	return keys
}

func resourceNamed(plural string) kube.Resource {
	for _, r := range kube.Resources() {
		if r.Plural == plural {
			return r
		}
	}
	panic("kit: no resource is called " + plural)
}

// List implements kube.Client.
func (a *API) List(ctx context.Context, r kube.Resource, namespace string, options metav1.ListOptions) (runtime.Object, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	list := r.NewList()
	_, err := a.serve(Request{Verb: "list", Resource: r.Plural, Key: kube.Key{Namespace: namespace}}, func() (string, error) {
		matches, err := matcher(namespace, options)
		if err != nil {
			return "", err
		}
		items := []any{}
		for _, at := range a.sortedKeys(r.Plural) {
			if matches(a.objects[at]) {
				items = append(items, a.objects[at])
			}
		}
		whole := raw{"metadata": raw{"resourceVersion": strconv.FormatInt(a.version, 10)}, "items": items}
		return "", json.Unmarshal([]byte(text(whole)), list)
	})
	return list, err
}

func matcher(namespace string, options metav1.ListOptions) (func(raw) bool, error) {
	byLabel, err := labels.Parse(options.LabelSelector)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(options.FieldSelector)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return func(r raw) bool {
		meta := metadata(r)
		if namespace != "" && stringOf(meta, "namespace") != namespace {
			return false
		}
		set := labels.Set{}
		if have, ok := meta["labels"].(raw); ok {
			for k := range have {
				set[k] = stringOf(have, k)
			}
		}
		return byLabel.Matches(set) && matchesFields(byField, r)
	}, nil
}

func matchesFields(selector fields.Selector, r raw) bool {
	set := fields.Set{}
	for _, requirement := range selector.Requirements() {
		value := any(r)
		for step := range strings.SplitSeq(requirement.Field, ".") {
			inner, _ := value.(raw)
			value = inner[step]
		}
		if value != nil {
			set[requirement.Field] = fmt.Sprint(value)
		}
	}
	return selector.Matches(set)
}

// Watch implements kube.Client, with initial events and their bookmark, without which today's client-go
// never counts a watch as synced.
func (a *API) Watch(ctx context.Context, r kube.Resource, namespace string, options metav1.ListOptions) (watch.Interface, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	w := &watcher{api: a, resource: r, results: make(chan watch.Event), done: make(chan struct{})}
	request := Request{Verb: "watch", Resource: r.Plural, Key: kube.Key{Namespace: namespace}}
	_, err := a.serve(request, func() (string, error) {
		var err error
		if w.matches, err = matcher(namespace, options); err != nil {
			return "", err
		}
		return "", w.begin(options)
	})
	if err != nil {
		return nil, err
	}
	go w.run(ctx)
	return w, nil
}

// Compact forgets the past: watches that ask for an older version are told that it is gone.
func (a *API) Compact() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.history, a.forgotten = nil, a.version
}

// BreakWatches ends every watch that runs, as a restarted server does.
func (a *API) BreakWatches() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.broken++
	close(a.changed)
	a.changed = make(chan struct{})
}

type watcher struct {
	api      *API
	resource kube.Resource
	matches  func(raw) bool
	initial  []watch.Event
	seen     int64
	life     int
	results  chan watch.Event
	done     chan struct{}
	once     sync.Once
}

// Stop implements watch.Interface.
func (w *watcher) Stop() { w.once.Do(func() { close(w.done) }) }

// ResultChan implements watch.Interface.
func (w *watcher) ResultChan() <-chan watch.Event { return w.results }

// begin is called with the lock held.
func (w *watcher) begin(options metav1.ListOptions) error {
	a := w.api
	w.seen, w.life = a.version, a.broken
	wantsAll := options.SendInitialEvents != nil && *options.SendInitialEvents
	version := options.ResourceVersion
	if !wantsAll && version != "" && version != "0" {
		asked, err := strconv.ParseInt(version, 10, 64)
		if err != nil {
			return apierrors.NewBadRequest("invalid resource version " + version)
		}
		if asked < a.forgotten {
			return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", asked, a.forgotten))
		}
		w.seen = asked
		return nil
	}
	for _, at := range a.sortedKeys(w.resource.Plural) {
		if w.matches(a.objects[at]) {
			w.initial = append(w.initial, watch.Event{Type: watch.Added, Object: typed(w.resource, a.objects[at])})
		}
	}
	if wantsAll && options.AllowWatchBookmarks {
		mark := w.resource.New()
		mark.SetResourceVersion(strconv.FormatInt(a.version, 10))
		mark.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		w.initial = append(w.initial, watch.Event{Type: watch.Bookmark, Object: mark})
	}
	return nil
}

func (w *watcher) run(ctx context.Context) {
	defer close(w.results)
	ready := w.initial
	for {
		for _, e := range ready {
			select {
			case w.results <- e:
			case <-w.done:
				return
			case <-ctx.Done():
				return
			}
		}
		var changed <-chan struct{}
		var broken bool
		if ready, changed, broken = w.pending(); broken {
			return
		}
		if len(ready) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-w.done:
			return
		case <-ctx.Done():
			return
		}
	}
}

// pending takes the events that the watch has not sent yet.
func (w *watcher) pending() (ready []watch.Event, changed <-chan struct{}, broken bool) {
	a := w.api
	a.mu.Lock()
	defer a.mu.Unlock()
	if w.life != a.broken {
		return nil, nil, true
	}
	for _, e := range a.history {
		if e.version <= w.seen || e.resource.Plural != w.resource.Plural {
			continue
		}
		if translated, ok := w.translate(e); ok {
			ready = append(ready, translated)
		}
	}
	w.seen = a.version
	return ready, a.changed, false
}

// translate turns a change into what a watch with a selector sees: an object that leaves the selection
// is deleted for it, one that enters is new.
func (w *watcher) translate(e event) (watch.Event, bool) {
	before := e.old != nil && w.matches(e.old)
	after := e.kind != watch.Deleted && w.matches(e.obj)
	kind := watch.Modified
	switch {
	case !before && !after:
		return watch.Event{}, false
	case !before:
		kind = watch.Added
	case !after:
		kind = watch.Deleted
	}
	shown := typed(w.resource, e.obj)
	if kind == watch.Deleted && e.old != nil {
		// As it was, with the version of the change, which is how the real server does it.
		shown = typed(w.resource, e.old)
		shown.SetResourceVersion(strconv.FormatInt(e.version, 10))
	}
	return watch.Event{Type: kind, Object: shown}, true
}
