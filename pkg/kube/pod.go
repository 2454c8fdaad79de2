// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Pod is a pod as far as it is read here: who controls it, which claims it uses, and what is said of its start.
// The whole kind would be a large dependency for that.
type Pod struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PodSpec   `json:"spec"`
	Status PodStatus `json:"status"`
}

// PodSpec is where a pod is to run, and with what.
type PodSpec struct {
	NodeName      string      `json:"nodeName,omitempty"`
	SchedulerName string      `json:"schedulerName,omitempty"`
	Volumes       []PodVolume `json:"volumes,omitempty"`
}

// PodVolume is one of a pod's volumes. Of one that has no claim only the name is read.
type PodVolume struct {
	Name  string   `json:"name"`
	Claim PodClaim `json:"persistentVolumeClaim,omitzero"`
	// Ephemeral is set where the claim is made with the pod.
	Ephemeral *struct{} `json:"ephemeral,omitempty"`
}

// PodClaim is the claim that a volume names.
type PodClaim struct {
	ClaimName string `json:"claimName"`
}

// PodStatus is how far a pod has come.
type PodStatus struct {
	Phase      corev1.PodPhase       `json:"phase,omitempty"`
	Conditions []corev1.PodCondition `json:"conditions,omitempty"`
	Init       []PodContainer        `json:"initContainerStatuses,omitempty"`
	Containers []PodContainer        `json:"containerStatuses,omitempty"`
}

// PodContainer is a container and what it waits for, if it does.
type PodContainer struct {
	Name  string            `json:"name"`
	State PodContainerState `json:"state,omitzero"`
}

// PodContainerState is the state of a container that has not started.
type PodContainerState struct {
	Waiting PodReason `json:"waiting,omitzero"`
}

// PodReason is why a container waits.
type PodReason struct {
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// PodList is a list of them.
type PodList = List[Pod, *Pod]

// ClaimNames are the claims that the pod uses, those made with it included.
func (p *Pod) ClaimNames() []string {
	var names []string
	for _, v := range p.Spec.Volumes {
		switch {
		case v.Claim.ClaimName != "":
			names = append(names, v.Claim.ClaimName)
		case v.Ephemeral != nil:
			// https://kubernetes.io/docs/concepts/storage/ephemeral-volumes/#persistentvolumeclaim-naming
			names = append(names, p.Name+"-"+v.Name)
		}
	}
	return names
}

// DeepCopyObject implements runtime.Object.
func (p *Pod) DeepCopyObject() runtime.Object { return p.deepCopy() }

func (p *Pod) deepCopy() *Pod {
	copied := *p
	copied.ObjectMeta = *p.ObjectMeta.DeepCopy()
	copied.Spec.Volumes = slices.Clone(p.Spec.Volumes)
	copied.Status.Conditions = slices.Clone(p.Status.Conditions)
	copied.Status.Init, copied.Status.Containers = slices.Clone(p.Status.Init), slices.Clone(p.Status.Containers)
	return &copied
}
