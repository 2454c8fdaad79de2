// SPDX-License-Identifier: Apache-2.0

package kube

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// appsVersion is the version of the workloads.
var appsVersion = schema.GroupVersion{Group: "apps", Version: "v1"}

// Owned is an object as far as the walk to an owner reads it: its metadata, which says who controls it. The
// whole kinds would be a large dependency for that.
type Owned[K any] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// The kinds that can stand between a pod and what is installed.
type (
	ReplicaSet  = Owned[replicaSet]
	DaemonSet   = Owned[daemonSet]
	StatefulSet = Owned[statefulSet]
	Deployment  = Owned[deployment]

	replicaSet  struct{}
	daemonSet   struct{}
	statefulSet struct{}
	deployment  struct{}
)

func registerOwned[K any](gv schema.GroupVersion, kind, plural string) {
	register[*Owned[K]](gv, kind, plural, true, &List[Owned[K], *Owned[K]]{})
}

// DeepCopyObject implements runtime.Object.
func (o *Owned[K]) DeepCopyObject() runtime.Object {
	copied := &Owned[K]{TypeMeta: o.TypeMeta}
	o.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	return copied
}
