// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// grantVersion is the version of ReferenceGrant that clusters have served for longest.
var grantVersion = schema.GroupVersion{Group: wellknown.GatewayGroup, Version: "v1beta1"}

// ReferenceGrant says who may refer to what in its namespace. It has the fields that are read here and no
// others, since the gateway API is a large dependency for one small kind.
type ReferenceGrant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ReferenceGrantSpec `json:"spec"`
}

// ReferenceGrantSpec is the content of a grant.
type ReferenceGrantSpec struct {
	From []ReferenceGrantFrom `json:"from"`
	To   []ReferenceGrantTo   `json:"to"`
}

// ReferenceGrantFrom is who may refer.
type ReferenceGrantFrom struct {
	Group     string `json:"group"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
}

// ReferenceGrantTo is what may be referred to; without a name it is all of the kind.
type ReferenceGrantTo struct {
	Group string  `json:"group"`
	Kind  string  `json:"kind"`
	Name  *string `json:"name,omitempty"`
}

// ReferenceGrantList is a list of them.
type ReferenceGrantList = List[ReferenceGrant, *ReferenceGrant]

// DeepCopyObject implements runtime.Object.
func (g *ReferenceGrant) DeepCopyObject() runtime.Object { return g.deepCopy() }

func (g *ReferenceGrant) deepCopy() *ReferenceGrant {
	if g == nil {
		return nil
	}
	copied := &ReferenceGrant{TypeMeta: g.TypeMeta, ObjectMeta: *g.ObjectMeta.DeepCopy()}
	copied.Spec.From = slices.Clone(g.Spec.From)
	copied.Spec.To = slices.Clone(g.Spec.To)
	for i, to := range g.Spec.To {
		if to.Name != nil {
			name := *to.Name
			copied.Spec.To[i].Name = &name
		}
	}
	return copied
}
