// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// pageSize is how many objects are asked for at once. A page of claims is decoded in some milliseconds and takes a megabyte
// for as long.
const pageSize = 500

// lister lists a kind page by page and puts each page away before it asks for the next, so that the objects of a large
// cluster are never all there whole. A streamed list (KEP-3157) does that as well, but wraps, sends and decodes each object
// by itself, which takes both sides about twice the processor time.
type lister[T Object] struct {
	client   Client
	informer *Informer[T]
	narrow   func(*metav1.ListOptions)
}

// list gives what was listed as marks: the objects lie on the shelf already, and the handlers know. What is missing is told
// by Replace, which the reflector calls with the marks of all pages or not at all. The version that the reflector asks for is
// not passed on: it would be content with an old state, and pages are only to be had of the newest.
func (l lister[T]) list(ctx context.Context) (runtime.Object, error) {
	in, options := intake[T]{l.informer}, metav1.ListOptions{Limit: pageSize}
	l.narrow(&options)
	all := &metainternalversion.List{}
	for ctx.Err() == nil {
		page, err := l.client.List(ctx, l.informer.resource, l.informer.namespace, options)
		if apierrors.IsResourceExpired(err) && options.Continue != "" {
			// The server does not keep a state for as long as its pages take here, and would not the next time either.
			options.Limit, options.Continue, all.Items = 0, "", nil
			continue
		}
		if err != nil {
			return nil, err
		}
		head, err := meta.ListAccessor(page)
		if err != nil {
			return nil, err
		}
		if options.Continue == "" {
			all.ResourceVersion = head.GetResourceVersion()
		}
		err = meta.EachListItemWithAlloc(page, func(obj runtime.Object) error {
			key, kept, err := in.see(obj)
			if kept {
				all.Items = append(all.Items, mark(key))
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if options.Continue = head.GetContinue(); options.Continue == "" {
			return all, nil
		}
	}
	return nil, context.Cause(ctx)
}

// mark stands in a list for an object that has been put away.
type mark Key

// GetObjectKind implements runtime.Object.
func (mark) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object.
func (m mark) DeepCopyObject() runtime.Object { return m }
