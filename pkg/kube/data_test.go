// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestPatchData: only the named entries change, and only of the object that was read.
func TestPatchData(t *testing.T) {
	h := kit.New(t)
	key := kube.Key{Namespace: "home", Name: "map"}
	h.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Data: map[string]string{"a": "1", "b": "2", "c": "3"}})
	read, err := kube.Fetch[*corev1.ConfigMap](t.Context(), h.API, key)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := kube.PatchData(t.Context(), h.API, read, map[string]*string{"a": nil, "b": kit.Ptr("4"), "d": kit.Ptr("5"), "none": nil})
	if d := cmp.Diff(map[string]string{"b": "4", "c": "3", "d": "5"}, stored.Data); err != nil || d != "" {
		t.Error(err, d)
	}
	if _, err := kube.PatchData(t.Context(), h.API, read, map[string]*string{"c": nil}); !kube.IsConflict(err) {
		t.Error("written on what was read long ago:", err)
	}
	if same, err := kube.PatchData(t.Context(), h.API, read, nil); err != nil || same != read {
		t.Error("nothing was to be written", err)
	}
	kit.Remove[*corev1.ConfigMap](h.API, key)
	h.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})
	if _, err := kube.PatchData(t.Context(), h.API, stored, map[string]*string{"c": nil}); !kube.IsConflict(err) {
		t.Error("written to a namesake:", err)
	}
}
