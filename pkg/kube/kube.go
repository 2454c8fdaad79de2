// SPDX-License-Identifier: Apache-2.0

// Package kube owns the way to the API server: one client over the few resources that the sidecars
// touch, the one write path to existing objects (Patch), the caches that rooms read from, events,
// secrets, and the feed of nodes into the topology.
//
// It must not know the driver, nor decide anything about storage.
//
// It stands twice in every walk: rooms gather from its stores, and act through its patches.
package kube

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Object is an API object of one of the Resources.
type Object interface {
	metav1.Object
	runtime.Object
}

// Key names an object; Namespace is empty for cluster-scoped ones.
type Key = types.NamespacedName

// KeyOf is the key of an object.
func KeyOf(obj metav1.Object) Key {
	return Key{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// PatchBody is one patch as it goes over the wire.
type PatchBody struct {
	Type types.PatchType
	Data []byte
	// Subresource is empty or "status".
	Subresource string
}

// Client is the API server as far as the sidecars need it. Errors are those of apierrors.
//
// Rooms use the typed functions of this package (Fetch, Create, Patch, Delete) instead of the methods.
type Client interface {
	// Fetch leaves all but the metadata out when into is a PartialObjectMetadata.
	Fetch(ctx context.Context, r Resource, key Key, into Object) error
	Create(ctx context.Context, r Resource, obj, into Object) error
	Patch(ctx context.Context, r Resource, key Key, body PatchBody, into Object) error
	Delete(ctx context.Context, r Resource, key Key, options metav1.DeleteOptions) error
	List(ctx context.Context, r Resource, namespace string, options metav1.ListOptions) (runtime.Object, error)
	Watch(ctx context.Context, r Resource, namespace string, options metav1.ListOptions) (watch.Interface, error)
}

// Fetch reads an object live. Use it only where a cache is not enough, and say why there.
func Fetch[T Object](ctx context.Context, c Client, key Key) (T, error) {
	r := ResourceOf[T]()
	obj := r.newObject().(T)
	err := c.Fetch(ctx, r, key, obj)
	return obj, err
}

// Create writes a new object and returns it as the server stored it.
func Create[T Object](ctx context.Context, c Client, obj T) (T, error) {
	r := ResourceOf[T]()
	stored := r.newObject().(T)
	err := c.Create(ctx, r, obj, stored)
	return stored, err
}

// Delete deletes exactly the object that was decided about: if it was changed or replaced since it was
// read, the server answers Conflict and nothing happens.
func Delete[T Object](ctx context.Context, c Client, obj T) error {
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	return c.Delete(ctx, ResourceOf[T](), KeyOf(obj), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
	})
}
