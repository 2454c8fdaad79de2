// SPDX-License-Identifier: Apache-2.0

package kube

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// List is a list of a kind that is declared in this package: P is the pointer to an item.
type List[T any, P interface {
	*T
	runtime.Object
}] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []T `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *List[T, P]) DeepCopyObject() runtime.Object {
	copied := &List[T, P]{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		if item, ok := P(&l.Items[i]).DeepCopyObject().(P); ok {
			copied.Items = append(copied.Items, *item)
		}
	}
	return copied
}
