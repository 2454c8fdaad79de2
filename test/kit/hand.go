// SPDX-License-Identifier: Apache-2.0

package kit

import (
	stdjson "encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// The functions in this file are the hand of users and of the rest of Kubernetes: not counted as effects,
// not written down, not bound to endpoints. A mistake in them is a mistake in the test, so they panic.

// Put stores objects as they are, status and deletion time included. UIDs and creation times that are
// missing are given.
func (a *API) Put(objects ...kube.Object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, obj := range objects {
		r, ok := kube.ResourceFor(obj)
		if !ok {
			panic(fmt.Sprintf("kit: %T is not in the table of resources", obj))
		}
		body, err := encode(obj)
		if err != nil {
			panic("kit: " + err.Error())
		}
		a.putRaw(r, kube.KeyOf(obj), body)
	}
}

// PutJSON stores an object with fields that the Go types may not know.
func PutJSON[T kube.Object](a *API, document string) {
	body := raw{}
	if err := json.Unmarshal([]byte(document), &body); err != nil {
		panic("kit: " + err.Error())
	}
	delete(body, "kind")
	delete(body, "apiVersion")
	a.mu.Lock()
	defer a.mu.Unlock()
	a.putRaw(kube.ResourceOf[T](), keyOf(body), body)
}

func (a *API) putRaw(r kube.Resource, key kube.Key, body raw) {
	at, meta := objectKey{r.Plural, key}, metadata(body)
	kind := watch.Modified
	if a.objects[at] == nil {
		kind = watch.Added
		uid := a.nextUID(at)
		if stringOf(meta, "uid") == "" {
			meta["uid"] = string(uid)
		}
	}
	if stringOf(meta, "creationTimestamp") == "" {
		meta["creationTimestamp"] = a.now()
	}
	a.store(r, at, body, kind)
}

// Read gives an object as it is stored now.
func Read[T kube.Object](a *API, key kube.Key) (T, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := kube.ResourceOf[T]()
	at := objectKey{r.Plural, key}
	found, ok := a.objects[at]
	if !ok {
		var none T
		return none, false
	}
	return a.view(r, at, found).(T), true
}

// Raw gives the JSON of an object as it is stored now, "" when there is none.
func Raw[T kube.Object](a *API, key kube.Key) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	found, ok := a.objects[objectKey{kube.ResourceOf[T]().Plural, key}]
	if !ok {
		return ""
	}
	return text(found)
}

// All gives every object of a kind, in the order of their keys.
func All[T kube.Object](a *API) []T {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := kube.ResourceOf[T]()
	var all []T
	for _, at := range a.sortedKeys(r.Plural) {
		all = append(all, a.view(r, at, a.objects[at]).(T))
	}
	return all
}

// Edit changes an object, spec and status alike; false means that there is none. Without finalizers a
// terminating object goes.
func Edit[T kube.Object](a *API, key kube.Key, mutate func(T)) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := kube.ResourceOf[T]()
	at := objectKey{r.Plural, key}
	current, ok := a.objects[at]
	if !ok {
		return false
	}
	before, after := a.view(r, at, current), a.view(r, at, current).(T)
	mutate(after)
	next := merge(clone(current), differ(before, after))
	switch {
	case text(next) == text(current):
	case isTerminating(next) && len(finalizers(next)) == 0:
		a.store(r, at, next, watch.Deleted)
	default:
		a.store(r, at, next, watch.Modified)
	}
	return true
}

// differ is the change between two objects; fields that the types do not know stay out of it.
func differ(before, after kube.Object) raw {
	x, err := stdjson.Marshal(before)
	if err != nil {
		panic("kit: " + err.Error())
	}
	y, err := stdjson.Marshal(after)
	if err != nil {
		panic("kit: " + err.Error())
	}
	data, err := jsonpatch.CreateMergePatch(x, y)
	if err != nil {
		panic("kit: " + err.Error())
	}
	change := raw{}
	if err := json.Unmarshal(data, &change); err != nil {
		panic("kit: " + err.Error())
	}
	return change
}

// Remove deletes an object as a user does: with finalizers it is only marked. False means that there is
// none.
func Remove[T kube.Object](a *API, key kube.Key) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.delete(kube.ResourceOf[T](), key, &metav1.Preconditions{}) == nil
}
