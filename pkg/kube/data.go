// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PatchData changes entries of a ConfigMap, and removes those that are nil. Like Patch it sends the UID and
// the resource version along. Unlike Patch it does not compare whole objects: these may be large, and who
// writes them often knows what has changed.
func PatchData(ctx context.Context, c Client, obj *corev1.ConfigMap, changes map[string]*string) (*corev1.ConfigMap, error) {
	if len(changes) == 0 {
		return obj, nil
	}
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": obj.UID, "resourceVersion": obj.ResourceVersion},
		"data":     changes,
	})
	if err != nil {
		return obj, fmt.Errorf("encoding a patch of ConfigMap %s: %w", obj.Name, err)
	}
	r := ResourceOf[*corev1.ConfigMap]()
	stored := &corev1.ConfigMap{}
	if err := c.Patch(ctx, r, KeyOf(obj), PatchBody{Type: types.MergePatchType, Data: data}, stored); err != nil {
		return obj, replaced(r, obj, err)
	}
	return stored, nil
}
