// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// FetchCount counts the objects of a kind. It reads one of them and what the server says of the rest, so that
// it costs the same in any cluster.
func FetchCount[T Object](ctx context.Context, c Client) (int, error) {
	list, err := c.List(ctx, ResourceOf[T](), "", metav1.ListOptions{Limit: 1})
	if err != nil {
		return 0, err
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return 0, fmt.Errorf("counting: %w", err)
	}
	count := meta.LenList(list)
	if rest := accessor.GetRemainingItemCount(); rest != nil {
		count += int(*rest)
	}
	return count, nil
}

// FetchIsListed tells whether an object of the name is there, for who may list its kind and get none of it.
func FetchIsListed[T Object](ctx context.Context, c Client, name string) (bool, error) {
	list, err := c.List(ctx, ResourceOf[T](), "", metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String(), Limit: 1})
	if err != nil {
		return false, err
	}
	return meta.LenList(list) > 0, nil
}
