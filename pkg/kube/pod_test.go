// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// TestPod: what is read of a pod is where Kubernetes writes it, and a copy shares nothing with it. Catches a field whose name
// here is not that of the API.
func TestPod(t *testing.T) {
	whole := &corev1.Pod{
		Spec: corev1.PodSpec{NodeName: "n1", SchedulerName: "s", Volumes: []corev1.Volume{
			{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "disk"}}},
			{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}}},
			{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}},
		}},
		Status: corev1.PodStatus{
			Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "R", Message: "m"}},
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "first"}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such image"},
			}}},
		},
	}
	whole.Name = "web-0"
	data, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	var got kube.Pod
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	want := kube.Pod{
		Spec: kube.PodSpec{NodeName: "n1", SchedulerName: "s", Volumes: []kube.PodVolume{
			{Name: "data", Claim: kube.PodClaim{ClaimName: "disk"}}, {Name: "scratch", Ephemeral: &struct{}{}}, {Name: "token"},
		}},
		Status: kube.PodStatus{
			Phase: corev1.PodPending, Conditions: whole.Status.Conditions, Init: []kube.PodContainer{{Name: "first"}},
			Containers: []kube.PodContainer{{Name: "app", State: kube.PodContainerState{Waiting: kube.PodReason{Reason: "ErrImagePull", Message: "no such image"}}}},
		},
	}
	want.Name = "web-0"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"disk", "web-0-scratch"}, got.ClaimNames()); diff != "" {
		t.Error(diff)
	}
	list := &kube.PodList{Items: []kube.Pod{got}}
	copied := list.DeepCopyObject().(*kube.PodList)
	again := got.DeepCopyObject().(*kube.Pod)
	for _, p := range []*kube.Pod{again, &copied.Items[0]} {
		if diff := cmp.Diff(want, *p); diff != "" {
			t.Error(diff)
		}
		p.Spec.Volumes[0].Name, p.Status.Conditions[0].Reason, p.Status.Containers[0].Name, p.Status.Init[0].Name = "x", "x", "x", "x"
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a copy was changed, and the pod with it: %s", diff)
	}
}
