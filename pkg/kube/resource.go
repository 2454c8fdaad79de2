// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"reflect"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Resource is one kind of object that the sidecars know.
type Resource struct {
	schema.GroupVersionKind
	// Plural is the name in URLs and in RBAC rules.
	Plural string
	// Namespaced is false for cluster-scoped kinds.
	Namespaced bool
	// JSON tells that the kind travels as JSON. Custom kinds have no other form, and neither has what only a
	// part is read of here.
	JSON bool

	newObject func() Object
	newList   func() runtime.Object
}

// New makes an empty object of the resource.
func (r Resource) New() Object { return r.newObject() }

// NewList makes an empty list of the resource.
func (r Resource) NewList() runtime.Object { return r.newList() }

// GroupResource is how apierrors and RBAC name the resource.
func (r Resource) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}
}

// Scheme holds the kinds of Resources and nothing else: a client with all of Kubernetes costs each
// sidecar tens of megabytes.
var Scheme = runtime.NewScheme()

var resources = map[reflect.Type]Resource{}

// Resources lists every kind that the sidecars know.
func Resources() []Resource {
	all := make([]Resource, 0, len(resources))
	for _, r := range resources {
		all = append(all, r)
	}
	return all
}

// ResourceOf is the resource of a type. The set of types is fixed in this file, and a test asks for each.
func ResourceOf[T Object]() Resource {
	t := reflect.TypeFor[T]()
	r, ok := resources[t]
	if !ok {
		panic(fmt.Sprintf("kube: %v is not in the table of resources", t))
	}
	return r
}

// ResourceFor is the resource of an object.
func ResourceFor(obj Object) (Resource, bool) {
	r, ok := resources[reflect.TypeOf(obj)]
	return r, ok
}

func register[T Object](gv schema.GroupVersion, kind, plural string, namespaced bool, list runtime.Object) {
	t := reflect.TypeFor[T]()
	object, listType := t.Elem(), reflect.TypeOf(list).Elem()
	r := Resource{
		GroupVersionKind: gv.WithKind(kind), Plural: plural, Namespaced: namespaced,
		newObject: func() Object { return reflect.New(object).Interface().(Object) },
		newList:   func() runtime.Object { return reflect.New(listType).Interface().(runtime.Object) },
	}
	_, isProtobuf := r.newObject().(interface{ Unmarshal(data []byte) error })
	r.JSON = !isProtobuf
	Scheme.AddKnownTypeWithName(r.GroupVersionKind, r.newObject())
	Scheme.AddKnownTypeWithName(gv.WithKind(kind+"List"), list)
	resources[t] = r
}

func init() {
	core, storage, snap := corev1.SchemeGroupVersion, storagev1.SchemeGroupVersion, snapv1.SchemeGroupVersion
	register[*corev1.PersistentVolume](core, "PersistentVolume", "persistentvolumes", false, &corev1.PersistentVolumeList{})
	register[*corev1.PersistentVolumeClaim](core, "PersistentVolumeClaim", "persistentvolumeclaims", true, &corev1.PersistentVolumeClaimList{})
	register[*corev1.Node](core, "Node", "nodes", false, &corev1.NodeList{})
	register[*corev1.Namespace](core, "Namespace", "namespaces", false, &corev1.NamespaceList{})
	register[*corev1.ConfigMap](core, "ConfigMap", "configmaps", true, &corev1.ConfigMapList{})
	register[*corev1.Secret](core, "Secret", "secrets", true, &corev1.SecretList{})
	register[*corev1.Event](core, "Event", "events", true, &corev1.EventList{})
	register[*storagev1.StorageClass](storage, "StorageClass", "storageclasses", false, &storagev1.StorageClassList{})
	register[*storagev1.CSINode](storage, "CSINode", "csinodes", false, &storagev1.CSINodeList{})
	register[*storagev1.CSIDriver](storage, "CSIDriver", "csidrivers", false, &storagev1.CSIDriverList{})
	register[*storagev1.VolumeAttachment](storage, "VolumeAttachment", "volumeattachments", false, &storagev1.VolumeAttachmentList{})
	register[*storagev1.VolumeAttributesClass](storage, "VolumeAttributesClass", "volumeattributesclasses", false, &storagev1.VolumeAttributesClassList{})
	register[*storagev1.CSIStorageCapacity](storage, "CSIStorageCapacity", "csistoragecapacities", true, &storagev1.CSIStorageCapacityList{})
	register[*coordinationv1.Lease](coordinationv1.SchemeGroupVersion, "Lease", "leases", true, &coordinationv1.LeaseList{})
	register[*authorizationv1.SelfSubjectAccessReview](authorizationv1.SchemeGroupVersion, "SelfSubjectAccessReview", "selfsubjectaccessreviews", false, &accessReviewList{})
	register[*authenticationv1.SelfSubjectReview](authenticationv1.SchemeGroupVersion, "SelfSubjectReview", "selfsubjectreviews", false, &selfReviewList{})
	register[*snapv1.VolumeSnapshot](snap, "VolumeSnapshot", "volumesnapshots", true, &snapv1.VolumeSnapshotList{})
	register[*snapv1.VolumeSnapshotClass](snap, "VolumeSnapshotClass", "volumesnapshotclasses", false, &snapv1.VolumeSnapshotClassList{})
	register[*ReferenceGrant](grantVersion, "ReferenceGrant", "referencegrants", true, &ReferenceGrantList{})
	register[*GroupSnapshot](groupVersion, wellknown.KindVolumeGroupSnapshot, "volumegroupsnapshots", true, &GroupSnapshotList{})
	register[*GroupSnapshotClass](groupVersion, "VolumeGroupSnapshotClass", "volumegroupsnapshotclasses", false, &GroupSnapshotClassList{})
	register[*Content](snap, "VolumeSnapshotContent", "volumesnapshotcontents", false, &ContentList{})
	register[*Pod](core, "Pod", "pods", true, &PodList{})
	registerOwned[replicaSet](appsVersion, "ReplicaSet", "replicasets")
	registerOwned[daemonSet](appsVersion, "DaemonSet", "daemonsets")
	registerOwned[statefulSet](appsVersion, "StatefulSet", "statefulsets")
	registerOwned[deployment](appsVersion, "Deployment", "deployments")

	versions := map[schema.GroupVersion]bool{}
	for _, r := range resources {
		versions[r.GroupVersion()] = true
	}
	for gv := range versions {
		metav1.AddToGroupVersion(Scheme, gv)
	}
	utilruntime.Must(metav1.AddMetaToScheme(Scheme))
}

// accessReviewList exists because every kind has a list in the table; reviews cannot be listed.
type accessReviewList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []authorizationv1.SelfSubjectAccessReview
}

// DeepCopyObject implements runtime.Object.
func (l *accessReviewList) DeepCopyObject() runtime.Object {
	copied := *l
	return &copied
}

// selfReviewList is the same for the question who the process is.
type selfReviewList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []authenticationv1.SelfSubjectReview
}

// DeepCopyObject implements runtime.Object.
func (l *selfReviewList) DeepCopyObject() runtime.Object {
	copied := *l
	return &copied
}
