// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

func TestEveryTypeHasItsResource(t *testing.T) {
	const core, storage, snapshots = "/v1", "storage.k8s.io/v1", "snapshot.storage.k8s.io/v1"
	rows := []struct {
		got        kube.Resource
		version    string
		plural     string
		namespaced bool
	}{
		{kube.ResourceOf[*corev1.PersistentVolume](), core, "persistentvolumes", false},
		{kube.ResourceOf[*corev1.PersistentVolumeClaim](), core, "persistentvolumeclaims", true},
		{kube.ResourceOf[*corev1.Node](), core, "nodes", false},
		{kube.ResourceOf[*corev1.Namespace](), core, "namespaces", false},
		{kube.ResourceOf[*corev1.ConfigMap](), core, "configmaps", true},
		{kube.ResourceOf[*corev1.Secret](), core, "secrets", true},
		{kube.ResourceOf[*corev1.Event](), core, "events", true},
		{kube.ResourceOf[*storagev1.StorageClass](), storage, "storageclasses", false},
		{kube.ResourceOf[*storagev1.CSINode](), storage, "csinodes", false},
		{kube.ResourceOf[*storagev1.CSIDriver](), storage, "csidrivers", false},
		{kube.ResourceOf[*storagev1.VolumeAttachment](), storage, "volumeattachments", false},
		{kube.ResourceOf[*storagev1.VolumeAttributesClass](), storage, "volumeattributesclasses", false},
		{kube.ResourceOf[*storagev1.CSIStorageCapacity](), storage, "csistoragecapacities", true},
		{kube.ResourceOf[*coordinationv1.Lease](), "coordination.k8s.io/v1", "leases", true},
		{kube.ResourceOf[*authorizationv1.SelfSubjectAccessReview](), "authorization.k8s.io/v1", "selfsubjectaccessreviews", false},
		{kube.ResourceOf[*authenticationv1.SelfSubjectReview](), "authentication.k8s.io/v1", "selfsubjectreviews", false},
		{kube.ResourceOf[*snapv1.VolumeSnapshot](), snapshots, "volumesnapshots", true},
		{kube.ResourceOf[*snapv1.VolumeSnapshotClass](), snapshots, "volumesnapshotclasses", false},
		{kube.ResourceOf[*kube.Content](), snapshots, "volumesnapshotcontents", false},
		{kube.ResourceOf[*kube.ReferenceGrant](), "gateway.networking.k8s.io/v1beta1", "referencegrants", true},
		{kube.ResourceOf[*kube.GroupSnapshot](), "groupsnapshot.storage.k8s.io/v1", "volumegroupsnapshots", true},
		{kube.ResourceOf[*kube.GroupSnapshotClass](), "groupsnapshot.storage.k8s.io/v1", "volumegroupsnapshotclasses", false},
		{kube.ResourceOf[*kube.Pod](), core, "pods", true},
		{kube.ResourceOf[*kube.ReplicaSet](), "apps/v1", "replicasets", true},
		{kube.ResourceOf[*kube.DaemonSet](), "apps/v1", "daemonsets", true},
		{kube.ResourceOf[*kube.StatefulSet](), "apps/v1", "statefulsets", true},
		{kube.ResourceOf[*kube.Deployment](), "apps/v1", "deployments", true},
	}
	if len(rows) != len(kube.Resources()) {
		t.Errorf("%d rows here, %d resources there", len(rows), len(kube.Resources()))
	}
	for _, row := range rows {
		version := row.got.Group + "/" + row.got.Version
		if isBuiltIn := row.version == core || row.version == storage; row.got.JSON && isBuiltIn && row.plural != "pods" {
			t.Errorf("%s travel as JSON, which costs more than protobuf", row.plural)
		}
		if version != row.version || row.got.Plural != row.plural || row.got.Namespaced != row.namespaced {
			t.Errorf("%s %s namespaced=%v, want %+v", version, row.got.Plural, row.got.Namespaced, row)
		}
		again, ok := kube.ResourceFor(row.got.New())
		if !ok || again.Plural != row.plural {
			t.Errorf("%s: its object belongs to %v", row.plural, again)
		}
		kinds, _, err := kube.Scheme.ObjectKinds(row.got.New())
		if err != nil || len(kinds) != 1 || kinds[0] != row.got.GroupVersionKind {
			t.Errorf("%s: the scheme knows its object as %v (%v)", row.plural, kinds, err)
		}
		kinds, _, err = kube.Scheme.ObjectKinds(row.got.NewList())
		if err != nil || len(kinds) != 1 || kinds[0].Kind != row.got.Kind+"List" {
			t.Errorf("%s: the scheme knows its list as %v (%v)", row.plural, kinds, err)
		}
		if copied := row.got.NewList().DeepCopyObject(); copied == nil {
			t.Errorf("%s: its list cannot be copied", row.plural)
		}
	}
	if _, ok := kube.ResourceFor(&corev1.Pod{}); ok {
		t.Error("pods are none of our business")
	}
}
