// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

func remove[T kube.Object](t *testing.T, c kube.Client, obj T, only *metav1.Preconditions) error {
	t.Helper()
	return c.Delete(t.Context(), kube.ResourceOf[T](), kube.KeyOf(obj), metav1.DeleteOptions{Preconditions: only})
}

func testFinalizers(t *testing.T, c kube.Client) {
	// Both sorts of server code: a built-in kind and a custom one.
	finalizersOf(t, c, kit.With(kit.Secret("kept", nil), kit.Finalizers("example.com/a", "example.com/b")))
	finalizersOf(t, c, kit.With(kit.Snapshot("kept", "data"), kit.Finalizers("example.com/a", "example.com/b")))
}

func finalizersOf[T kube.Object](t *testing.T, c kube.Client, obj T) {
	t.Helper()
	born := create(t, c, obj)
	expect(t, "delete", remove(t, c, born, nil), "")
	marked := fetch(t, c, born)
	if marked.GetDeletionTimestamp() == nil || marked.GetResourceVersion() == born.GetResourceVersion() {
		t.Fatalf("not marked: %v", marked)
	}
	expect(t, "delete again", remove(t, c, born, nil), "")
	if again := fetch(t, c, born); again.GetResourceVersion() != marked.GetResourceVersion() {
		t.Error("deleting again made a new version")
	}
	_, err := patch(t.Context(), c, born, "", `{"metadata":{"finalizers":["example.com/a","example.com/b","example.com/c"]}}`)
	expect(t, "new finalizer on a terminating object", err, metav1.StatusReasonInvalid)
	_, err = patch(t.Context(), c, born, "", `{"metadata":{"deletionTimestamp":null,"labels":{"a":"1"}}}`)
	expect(t, "undelete", err, "")
	now := fetch(t, c, born)
	if now.GetDeletionTimestamp() == nil || now.GetLabels()["a"] != "1" {
		t.Error("a patch took the deletion back, or other fields of it were lost")
	}
	now, err = kube.Patch(t.Context(), c, now, func(o T) { kube.RemoveFinalizer(o, "example.com/a") })
	expect(t, "one less", err, "")
	last, err := kube.Patch(t.Context(), c, now, func(o T) { kube.RemoveFinalizer(o, "example.com/b") })
	expect(t, "the last one", err, "")
	if len(last.GetFinalizers()) != 0 || last.GetResourceVersion() != now.GetResourceVersion() {
		t.Errorf("the answer of the last patch has finalizers %v, version %s after %s", last.GetFinalizers(), last.GetResourceVersion(), now.GetResourceVersion())
	}
	_, err = kube.Fetch[T](t.Context(), c, kube.KeyOf(born))
	expect(t, "gone", err, metav1.StatusReasonNotFound)
	_, err = kube.Patch(t.Context(), c, now, func(o T) { o.SetLabels(nil) })
	expect(t, "patch of what is gone", err, metav1.StatusReasonNotFound)
}

func testPreconditions(t *testing.T, c kube.Client) {
	old := create(t, c, kit.Secret("guarded", nil))
	now, err := patch(t.Context(), c, old, "", `{"metadata":{"labels":{"a":"1"}}}`)
	expect(t, "change", err, "")
	expect(t, "stale version", kube.Delete(t.Context(), c, old), metav1.StatusReasonConflict)
	expect(t, "another UID", remove(t, c, old, &metav1.Preconditions{UID: kit.Ptr(types.UID("x"))}), metav1.StatusReasonConflict)
	expect(t, "empty UID", remove(t, c, old, &metav1.Preconditions{UID: kit.Ptr(types.UID(""))}), metav1.StatusReasonConflict)
	expect(t, "right", kube.Delete(t.Context(), c, now), "")
	expect(t, "gone", kube.Delete(t.Context(), c, now), metav1.StatusReasonNotFound)
	_, err = kube.Fetch[*corev1.Secret](t.Context(), c, kube.KeyOf(old))
	expect(t, "fetch", err, metav1.StatusReasonNotFound)

	snapshot := create(t, c, kit.Snapshot("guarded", "data"))
	wrong := snapshot.DeepCopy()
	wrong.ResourceVersion = "1"
	expect(t, "stale version of a custom object", kube.Delete(t.Context(), c, wrong), metav1.StatusReasonConflict)
	expect(t, "right for a custom object", kube.Delete[*snapv1.VolumeSnapshot](t.Context(), c, snapshot), "")
}
