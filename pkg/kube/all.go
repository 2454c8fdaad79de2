// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"iter"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// FetchAll lists the objects of a kind live, page by page, for those who need no cache of them: a search, a
// question of a user. An error ends it, since what was not seen would count as not there.
func FetchAll[T Object](ctx context.Context, c Client, namespace string, options metav1.ListOptions) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		options.Limit = pageSize
		for {
			page, err := c.List(ctx, ResourceOf[T](), namespace, options)
			if err != nil {
				yield(none, err)
				return
			}
			objects, next, err := turn[T](page)
			if err != nil {
				yield(none, fmt.Errorf("reading a list of %s: %w", ResourceOf[T]().Kind, err))
				return
			}
			for _, obj := range objects {
				if !yield(obj, nil) {
					return
				}
			}
			if options.Continue = next; next == "" {
				return
			}
		}
	}
}

// turn takes a page apart into its objects and where the next one begins.
func turn[T Object](page runtime.Object) (objects []T, next string, err error) {
	head, err := meta.ListAccessor(page)
	if err != nil {
		return nil, "", err
	}
	objects = make([]T, 0, meta.LenList(page))
	err = meta.EachListItem(page, func(obj runtime.Object) error {
		typed, ok := obj.(T)
		if !ok {
			return fmt.Errorf("there is a %T in it", obj)
		}
		objects = append(objects, typed)
		return nil
	})
	return objects, head.GetContinue(), err
}
