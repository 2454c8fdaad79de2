// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Patch is the one way to change an existing object: mutate edits a copy, and the difference is sent
// together with the UID and the resource version that the decision was made on. A difference of nothing
// is not sent. The result is the object as the server has it now.
//
// The lock matters most for lists: a merge patch replaces them whole, so a finalizer list computed from
// an old object would drop what others added since. A Conflict is an ordinary reason to try again.
func Patch[T Object](ctx context.Context, c Client, obj T, mutate func(T)) (T, error) {
	return patch(ctx, c, obj, change[T]{mutate: mutate, locked: true})
}

// PatchStatus does for the status subresource what Patch does for the rest.
func PatchStatus[T Object](ctx context.Context, c Client, obj T, mutate func(T)) (T, error) {
	return patch(ctx, c, obj, change[T]{mutate: mutate, locked: true, subresource: "status"})
}

// PatchOwnFields is Patch without the resource version, for single scalar fields and map keys that
// nobody else writes and whose value does not depend on what else the object says. It still never
// touches a namesake: the UID goes along.
func PatchOwnFields[T Object](ctx context.Context, c Client, obj T, mutate func(T)) (T, error) {
	return patch(ctx, c, obj, change[T]{mutate: mutate})
}

// PatchOwnStatus is PatchOwnFields for the status subresource.
func PatchOwnStatus[T Object](ctx context.Context, c Client, obj T, mutate func(T)) (T, error) {
	return patch(ctx, c, obj, change[T]{mutate: mutate, subresource: "status"})
}

type change[T Object] struct {
	mutate      func(T)
	locked      bool
	subresource string
}

func patch[T Object](ctx context.Context, c Client, obj T, by change[T]) (T, error) {
	edited := obj.DeepCopyObject().(T)
	by.mutate(edited)
	data, err := difference(obj, edited, by.locked)
	if err != nil || data == nil {
		return obj, err
	}
	r := ResourceOf[T]()
	stored := r.newObject().(T)
	body := PatchBody{Type: types.MergePatchType, Data: data, Subresource: by.subresource}
	if err := c.Patch(ctx, r, KeyOf(obj), body, stored); err != nil {
		return obj, replaced(r, obj, err)
	}
	return stored, nil
}

// replaced turns the answer "metadata.uid is immutable" into the Conflict that it is: the object was
// deleted and a namesake stands in its place. The server checks the resource version first, so only
// patches without one get that answer.
func replaced(r Resource, obj metav1.Object, err error) error {
	var state apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &state) || state.Status().Details == nil {
		return err
	}
	for _, cause := range state.Status().Details.Causes {
		if cause.Field == "metadata.uid" {
			return apierrors.NewConflict(r.GroupResource(), obj.GetName(), err)
		}
	}
	return err
}

// difference is the merge patch from one object to another, nil when they are alike.
func difference(from, to Object, locked bool) ([]byte, error) {
	before, err := fieldsOf(from)
	if err != nil {
		return nil, err
	}
	after, err := fieldsOf(to)
	if err != nil {
		return nil, err
	}
	fields := mergePatch(before, after)
	if len(fields) == 0 {
		return nil, nil
	}
	metadata, _ := fields["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	keepOthers(metadata, "annotations", from.GetAnnotations())
	keepOthers(metadata, "labels", from.GetLabels())
	metadata["uid"] = from.GetUID()
	if locked {
		metadata["resourceVersion"] = from.GetResourceVersion()
	}
	fields["metadata"] = metadata
	return json.Marshal(fields)
}

// fieldsOf is an object as it is sent. Whole numbers stay whole: a time in nanoseconds or a size in bytes is more than a float holds.
func fieldsOf(obj Object) (map[string]any, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", obj, err)
	}
	fields := map[string]any{}
	if err := utiljson.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("reading the fields of %T: %w", obj, err)
	}
	return fields, nil
}

// mergePatch is what makes one set of fields of another (RFC 7386). Libraries that do it take all numbers for floats.
func mergePatch(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for name := range from {
		if _, stays := to[name]; !stays {
			patch[name] = nil
		}
	}
	for name, now := range to {
		was, old := from[name].(map[string]any)
		is, compound := now.(map[string]any)
		switch {
		case old && compound:
			if inner := mergePatch(was, is); len(inner) > 0 {
				patch[name] = inner
			}
		case !reflect.DeepEqual(from[name], now):
			patch[name] = now
		}
	}
	return patch
}

// keepOthers lets a patch that would remove a whole map remove only the keys that were seen in it. The server may
// have others, which the cache has cut away or somebody has written since.
func keepOthers(metadata map[string]any, name string, seen map[string]string) {
	if value, ok := metadata[name]; !ok || value != nil {
		return
	}
	keys := map[string]any{}
	for key := range seen {
		keys[key] = nil
	}
	metadata[name] = keys
}

// IsGone tells that the object of a write does not exist any more. Where a namesake has taken its place
// the answer is a Conflict instead, and the next try sees the namesake.
func IsGone(err error) bool { return apierrors.IsNotFound(err) }

// IsConflict tells that the object has changed since it was read; the next try reads it anew. Users
// never see it.
func IsConflict(err error) bool { return apierrors.IsConflict(err) }

// HasFinalizer tells whether the object carries the finalizer.
func HasFinalizer(obj metav1.Object, name string) bool {
	for _, f := range obj.GetFinalizers() {
		if f == name {
			return true
		}
	}
	return false
}

// AddFinalizer adds finalizers that are missing to an object that is being edited.
func AddFinalizer(obj metav1.Object, names ...string) {
	list := append([]string(nil), obj.GetFinalizers()...)
	for _, name := range names {
		if !HasFinalizer(obj, name) {
			list = append(list, name)
		}
	}
	obj.SetFinalizers(list)
}

// RemoveFinalizer removes finalizers, every copy of them, from an object that is being edited.
func RemoveFinalizer(obj metav1.Object, names ...string) {
	var kept []string
	for _, f := range obj.GetFinalizers() {
		drop := false
		for _, name := range names {
			drop = drop || f == name
		}
		if !drop {
			kept = append(kept, f)
		}
	}
	obj.SetFinalizers(kept)
}

// SetAnnotation sets one annotation of an object that is being edited.
func SetAnnotation(obj metav1.Object, key, value string) {
	edited := map[string]string{}
	for k, v := range obj.GetAnnotations() {
		edited[k] = v
	}
	edited[key] = value
	obj.SetAnnotations(edited)
}

// RemoveAnnotation removes annotations of an object that is being edited.
func RemoveAnnotation(obj metav1.Object, keys ...string) {
	edited := map[string]string{}
	for k, v := range obj.GetAnnotations() {
		edited[k] = v
	}
	for _, key := range keys {
		delete(edited, key)
	}
	obj.SetAnnotations(edited)
}
