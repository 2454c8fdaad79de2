// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

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
	at := objectKey{e.resource.Plural, e.key}
	if e.kind == watch.Deleted {
		change.Old = typed(e.resource, e.obj)
		delete(a.views, at)
	} else {
		if e.old != nil {
			change.Old = a.view(e.resource, at, e.old)
		}
		change.New = a.view(e.resource, at, e.obj)
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

// view is typed for what the server holds, decoded once for each version. The copy is the caller's.
func (a *API) view(r kube.Resource, at objectKey, body raw) kube.Object {
	known := a.views[at]
	if known == nil || known.GetResourceVersion() != stringOf(metadata(body), "resourceVersion") {
		known = typed(r, body)
		a.views[at] = known
	}
	return known.DeepCopyObject().(kube.Object)
}

// answer fills the object that a client waits for.
func (a *API) answer(r kube.Resource, at objectKey, body raw, into kube.Object) error {
	if bare, ok := into.(*metav1.PartialObjectMetadata); ok {
		return decode(raw{"metadata": body["metadata"]}, bare)
	}
	if a.objects[at] == nil { // the answer to the last patch of a terminating object
		return decode(body, into)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(a.view(r, at, body)).Elem())
	return nil
}

// listen tells of every change from now on, after telling what there is, until stop is called. It must
// not call the API.
func (a *API) listen(tell func(Change)) (stop func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, at := range a.sortedKeys("") {
		r := resourceNamed(at.plural)
		tell(Change{Resource: r, New: a.view(r, at, a.objects[at])})
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
