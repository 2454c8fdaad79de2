// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FetchServed asks whether the API server has a kind at all. It needs no right beyond reading one object
// of the kind: the answer to a name that nobody uses differs from the answer to a path that is not there.
func FetchServed[T Object](ctx context.Context, c Client) (bool, error) {
	r := ResourceOf[T]()
	key := Key{Name: "is-this-kind-served"}
	if r.Namespaced {
		key.Namespace = metav1.NamespaceDefault
	}
	err := c.Fetch(ctx, r, key, r.New())
	switch {
	case err == nil:
		return true, nil
	case isUnserved(err):
		return false, nil
	case apierrors.IsNotFound(err):
		return true, nil
	default:
		return false, err
	}
}

// isUnserved tells an answer that is not about an object: the server has no such path.
func isUnserved(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
