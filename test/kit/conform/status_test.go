// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

func testStatusOfCustom(t *testing.T, c kube.Client) {
	old := create(t, c, kit.Snapshot("with-status", "data", kit.BoundContent("x")))
	if old.Status != nil {
		t.Errorf("created with status %v", old.Status)
	}
	now, err := patch(t.Context(), c, old, "", `{"metadata":{"labels":{"a":"1"}},"status":{"readyToUse":true}}`)
	expect(t, "main", err, "")
	if now.Status != nil || now.Labels["a"] != "1" {
		t.Errorf("main endpoint: status %v, labels %v", now.Status, now.Labels)
	}
	now, err = patch(t.Context(), c, old, "status",
		`{"metadata":{"labels":{"a":"2"}},"spec":{"volumeSnapshotClassName":"other"},"status":{"readyToUse":true}}`)
	expect(t, "status", err, "")
	if now.Status == nil || !*now.Status.ReadyToUse || now.Labels["a"] != "1" || *now.Spec.VolumeSnapshotClassName != "snap" {
		t.Errorf("status endpoint: status %v, labels %v, class %v", now.Status, now.Labels, *now.Spec.VolumeSnapshotClassName)
	}
	_, err = patch(t.Context(), c, old, "status", `{"metadata":{"resourceVersion":"`+old.ResourceVersion+`"},"status":{"readyToUse":false}}`)
	expect(t, "stale lock of the status", err, metav1.StatusReasonConflict)
	same, err := patch(t.Context(), c, old, "status", `{"metadata":{"labels":{"a":"3"}}}`)
	expect(t, "nothing for the status", err, "")
	if same.ResourceVersion != now.ResourceVersion {
		t.Error("a patch that the endpoint drops made a new version")
	}
}

func testStatusOfBuiltIn(t *testing.T, c kube.Client) {
	old := create(t, c, kit.Attachment("with-status", "pv", "node"))
	if old.Status.Attached {
		t.Error("created with status")
	}
	now, err := patch(t.Context(), c, old, "", `{"metadata":{"labels":{"a":"1"}},"status":{"attached":true}}`)
	expect(t, "main", err, "")
	if now.Status.Attached || now.Labels["a"] != "1" {
		t.Errorf("main endpoint: %v %v", now.Status, now.Labels)
	}
	now, err = patch(t.Context(), c, old, "status", `{"spec":{"nodeName":"other"},"status":{"attached":true}}`)
	expect(t, "status", err, "")
	if !now.Status.Attached || now.Spec.NodeName != "node" {
		t.Errorf("status endpoint: %v %v", now.Status, now.Spec)
	}

	volume := create(t, c, kit.Volume("phased", kit.Released))
	if volume.Status.Phase != corev1.VolumePending {
		t.Errorf("a new volume is %v", volume.Status.Phase)
	}
	released, err := patch(t.Context(), c, volume, "status", `{"status":{"phase":"Released"}}`)
	expect(t, "phase", err, "")
	if released.Status.Phase != corev1.VolumeReleased {
		t.Errorf("the volume is %v", released.Status.Phase)
	}
	claim := create(t, c, kit.Claim("phased"))
	if claim.Status.Phase != corev1.ClaimPending {
		t.Errorf("a new claim is %v", claim.Status.Phase)
	}
	node := kit.Node("with-status", nil)
	node.Status.Phase = corev1.NodeRunning
	if node := create(t, c, node); node.Status.Phase != corev1.NodeRunning {
		t.Error("nodes are created with their status")
	}
}

// The group handle is a field that client/v6 does not know; no write through it may lose it.
func testUnknownFields(t *testing.T, c kube.Client) {
	content := kit.Content(kit.Snapshot("grouped", "data"), "handle")
	old := create(t, c, content)
	_, err := patch(t.Context(), c, old, "status", `{"status":{"volumeGroupSnapshotHandle":"group-1","creationTime":1767268800123456789}}`)
	expect(t, "group handle", err, "")
	seen := fetch(t, c, old)
	if seen.GroupHandle() != "group-1" || *seen.Status.CreationTime != 1767268800123456789 {
		t.Fatalf("group %q, status %v", seen.GroupHandle(), seen.Status)
	}
	after, err := kube.PatchStatus(t.Context(), c, seen, func(o *kube.Content) { o.Status.ReadyToUse = kit.Ptr(true) })
	expect(t, "typed status patch", err, "")
	if after.GroupHandle() != "group-1" || !*after.Status.ReadyToUse {
		t.Errorf("group %q, status %v", after.GroupHandle(), after.Status)
	}
	after, err = kube.Patch(t.Context(), c, after, func(o *kube.Content) { kube.AddFinalizer(o, "example.com/a") })
	expect(t, "typed main patch", err, "")
	if after.GroupHandle() != "group-1" || len(after.Finalizers) != 1 {
		t.Errorf("group %q, finalizers %v", after.GroupHandle(), after.Finalizers)
	}
	if _, err := kube.Patch(t.Context(), c, after, func(o *kube.Content) { kube.RemoveFinalizer(o, "example.com/a") }); err != nil {
		t.Error(err)
	}
}

func allowed(t *testing.T, c kube.Client, verb string) bool {
	t.Helper()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Resource: "secrets", Namespace: "default"},
	}}
	answer, err := kube.Create(t.Context(), c, review)
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status.Allowed
}
