// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// each lists all objects of a kind, in all namespaces.
func each[T kube.Object](ctx context.Context, c kube.Client, options metav1.ListOptions, do func(T)) error {
	for obj, err := range kube.FetchAll[T](ctx, c, "", options) {
		if err != nil {
			return err
		}
		do(obj)
	}
	return nil
}
