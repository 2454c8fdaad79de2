// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

func dataSource(group, kind, name string) func(*ClaimInput) {
	return func(in *ClaimInput) {
		in.Claim.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: kind, Name: name}
		if group != "" {
			in.Claim.Spec.DataSource.APIGroup = of(group)
		}
	}
}

func fromSnapshot(in *ClaimInput) {
	dataSource("snapshot.storage.k8s.io", "VolumeSnapshot", "snap")(in)
}

func fromClaim(in *ClaimInput) { dataSource("", "PersistentVolumeClaim", "src")(in) }

// restore is a claim from a snapshot that is in order in every respect.
func restore(edits ...func(*ClaimInput)) []func(*ClaimInput) {
	return append([]func(*ClaimInput){can(csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT), fromSnapshot, func(in *ClaimInput) {
		in.Source = &SourceState{
			Snapshot: &snapv1.VolumeSnapshot{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns1", Name: "snap", UID: "snap-uid", Finalizers: []string{wellknown.FinalizerSnapshotAsSource}},
				Status: &snapv1.VolumeSnapshotStatus{
					BoundVolumeSnapshotContentName: of("content"), ReadyToUse: of(true), RestoreSize: of(resource.MustParse("1Gi")),
				},
			},
			Content: &snapv1.VolumeSnapshotContent{
				ObjectMeta: metav1.ObjectMeta{Name: "content"},
				Spec: snapv1.VolumeSnapshotContentSpec{
					Driver: "d", VolumeSnapshotRef: corev1.ObjectReference{Namespace: "ns1", Name: "snap", UID: "snap-uid"},
					SourceVolumeMode: of(corev1.PersistentVolumeFilesystem),
				},
				Status: &snapv1.VolumeSnapshotContentStatus{SnapshotHandle: of("snap-handle")},
			},
		}
	}}, edits...)
}

func snapshotIs(edit func(*snapv1.VolumeSnapshot)) func(*ClaimInput) {
	return func(in *ClaimInput) { edit(in.Source.Snapshot) }
}

func contentIs(edit func(*snapv1.VolumeSnapshotContent)) func(*ClaimInput) {
	return func(in *ClaimInput) { edit(in.Source.Content) }
}

func cameLate(in *ClaimInput) { in.Claim.CreationTimestamp = metav1.NewTime(now) }

func asks(size string) func(*ClaimInput) {
	return func(in *ClaimInput) {
		in.Claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	}
}

func TestSourceOf(t *testing.T) {
	ref := func(group, kind, name string, namespace *string) func(*ClaimInput) {
		return func(in *ClaimInput) {
			in.Claim.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: of(group), Kind: kind, Name: name, Namespace: namespace}
		}
	}
	snapshots := can(csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT)
	runClaims(t, []claimRow{
		{"T14 a populator's", edits{dataSource("x", "MyPopulator", "p")}, "LeaveToPopulator"},
		{"T14 a populator's by reference", edits{ref("x", "MyPopulator", "p", nil)}, "LeaveToPopulator"},
		{"T15 snapshot of a foreign group", edits{dataSource("x", "VolumeSnapshot", "s")},
			"Reject: the PVC source does not belong to the right APIGroup. Expected snapshot.storage.k8s.io, Got x"},
		{"T15 snapshot without group", edits{dataSource("", "VolumeSnapshot", "s")},
			"Reject: the PVC source does not belong to the right APIGroup. Expected snapshot.storage.k8s.io, Got "},
		{"no name", edits{dataSource("", "PersistentVolumeClaim", "")}, "Reject: the PVC source not found for PVC data"},
		{"the source is read first", edits{snapshots, fromSnapshot}, "ReadSource: {VolumeSnapshot ns1 snap}"},
		{"the source by reference", edits{snapshots, ref("snapshot.storage.k8s.io", "VolumeSnapshot", "s2", nil)}, "ReadSource: {VolumeSnapshot ns1 s2}"},
		{"dataSource wins over the reference", edits{snapshots, fromSnapshot, ref("snapshot.storage.k8s.io", "VolumeSnapshot", "s2", nil)}, "ReadSource: {VolumeSnapshot ns1 snap}"},
		{"T52 another namespace while the feature is off", edits{snapshots, ref("snapshot.storage.k8s.io", "VolumeSnapshot", "s2", of("ns2"))},
			"Reject: dataSourceRef namespace specified but the CrossNamespaceVolumeDataSource feature is disabled"},
		{"W22 an empty namespace is the claim's", edits{snapshots, ref("snapshot.storage.k8s.io", "VolumeSnapshot", "s2", of(""))}, "ReadSource: {VolumeSnapshot ns1 s2}"},
		{"order: a wrong class is told before the source is read", edits{snapshots, fromSnapshot, parameters("fstype", "a", "csi.storage.k8s.io/fstype", "a")},
			`Reject: fstype specified in parameters with both "fstype" and "csi.storage.k8s.io/fstype" keys`},
	})
}

func TestRestore(t *testing.T) {
	const refused = "Reject: error getting handle for DataSource Type VolumeSnapshot by Name snap: "
	const mode = refused + "requested volume ns1/data modifies the mode of the source volume but does not have permission to do so. "
	const key = "snapshot.storage.kubernetes.io/allow-volume-mode-change"
	allow := func(value string) func(*ClaimInput) {
		return contentIs(func(c *snapv1.VolumeSnapshotContent) { c.Annotations = map[string]string{key: value} })
	}
	unprotected := snapshotIs(func(s *snapv1.VolumeSnapshot) { s.Finalizers = []string{"foreign"} })
	terminating := snapshotIs(func(s *snapv1.VolumeSnapshot) { s.DeletionTimestamp = gone })
	runClaims(t, []claimRow{
		{"T35 in order", restore(), ours},
		{"T35 not protected yet", restore(unprotected), "ProtectSource: {VolumeSnapshot ns1 snap}"},
		{"T41 cannot be protected", restore(unprotected, func(in *ClaimInput) { in.Source.Unprotected = true }), ours},
		{"T36.1 not there", restore(func(in *ClaimInput) { *in.Source = SourceState{SnapshotErr: errors.New("no such thing")} }),
			refused + "error getting snapshot snap from api server: no such thing"},
		{"T39 T36.2 terminating without our finalizer", restore(terminating, unprotected), refused + "snapshot snap is being deleted"},
		{"T39 terminating with our finalizer", restore(terminating), ours},
		{"B005 terminating, and the claim came after", restore(terminating, cameLate), refused + "snapshot snap is being deleted"},
		{"T36.3 no status", restore(snapshotIs(func(s *snapv1.VolumeSnapshot) { s.Status = nil })), "waiting " + refused + "snapshot snap not bound"},
		{"T36.3 not bound", restore(snapshotIs(func(s *snapv1.VolumeSnapshot) { s.Status.BoundVolumeSnapshotContentName = nil })), "waiting " + refused + "snapshot snap not bound"},
		{"T36.4 no content", restore(func(in *ClaimInput) { in.Source.Content, in.Source.ContentErr = nil, errors.New("no such thing") }),
			refused + "error getting snapshotcontent content for snapshot snap: no such thing"},
		{"T37 other UID", restore(contentIs(func(c *snapv1.VolumeSnapshotContent) { c.Spec.VolumeSnapshotRef.UID = "x" })), refused + "snapshotcontent content for snapshot snap is bound to a different snapshot"},
		{"T37 other namespace", restore(contentIs(func(c *snapv1.VolumeSnapshotContent) { c.Spec.VolumeSnapshotRef.Namespace = "x" })), refused + "snapshotcontent content for snapshot snap is bound to a different snapshot"},
		{"T37 other name", restore(contentIs(func(c *snapv1.VolumeSnapshotContent) { c.Spec.VolumeSnapshotRef.Name = "x" })), refused + "snapshotcontent content for snapshot snap is bound to a different snapshot"},
		{"T38 T36.6 other driver", restore(contentIs(func(c *snapv1.VolumeSnapshotContent) { c.Spec.Driver = "e" })), refused + "snapshotcontent content for snapshot snap is not handled by CSI driver of StorageClass sc"},
		{"T36.7 not ready", restore(snapshotIs(func(s *snapv1.VolumeSnapshot) { s.Status.ReadyToUse = of(false) })), "waiting " + refused + "snapshot snap is not Ready"},
		{"T36.7 readiness not said", restore(snapshotIs(func(s *snapv1.VolumeSnapshot) { s.Status.ReadyToUse = nil })), "waiting " + refused + "snapshot snap is not Ready"},
		{"T36.8 no handle", restore(contentIs(func(c *snapv1.VolumeSnapshotContent) { c.Status.SnapshotHandle = nil })), "waiting " + refused + "snapshot handle snap is not available"},
		{"T36.8 no content status", restore(contentIs(func(c *snapv1.VolumeSnapshotContent) { c.Status = nil })), "waiting " + refused + "snapshot handle snap is not available"},
		{"T36.8 a handle that says nothing", restore(contentIs(func(c *snapv1.VolumeSnapshotContent) { c.Status.SnapshotHandle = of("") })), refused + "snapshotcontent content for snapshot snap has an empty snapshotHandle in its status"},
		{"T36.9 no request", restore(func(in *ClaimInput) { in.Claim.Spec.Resources.Requests = nil }), refused + "error getting capacity for PVC data when creating snapshot snap"},
		{"no request and no restore size", restore(func(in *ClaimInput) { in.Claim.Spec.Resources.Requests = nil }, snapshotIs(func(s *snapv1.VolumeSnapshot) { s.Status.RestoreSize = nil })), ours},
		{"B033 T38 T36.10 smaller", restore(asks("50Mi")), refused + "requested volume size 52428800 is less than the size 1073741824 for the source snapshot snap"},
		{"T38 larger", restore(asks("2Gi")), ours},
		{"order: readiness before size", restore(asks("1Mi"), snapshotIs(func(s *snapv1.VolumeSnapshot) { s.Status.ReadyToUse = of(false) })), "waiting " + refused + "snapshot snap is not Ready"},
		{"T40 no permission", restore(block), mode + key + " annotation is not present on snapshotcontent content"},
		{"T40 permission false", restore(block, allow("false")), mode + key + " is set to false on snapshotcontent content"},
		{"T40 permission unclear", restore(block, allow("maybe")), mode + "failed to convert " + key + ` annotation value to boolean with error: strconv.ParseBool: parsing "maybe": invalid syntax`},
		{"T40 permission", restore(block, allow("true")), ours},
		{"T40 guard off", restore(block, func(in *ClaimInput) { in.PreventModeConversion = false }), ours},
		{"T40 source mode not known", restore(block, contentIs(func(c *snapv1.VolumeSnapshotContent) { c.Spec.SourceVolumeMode = nil })), ours},
		{"T40 claim mode not set", restore(contentIs(func(c *snapv1.VolumeSnapshotContent) { c.Spec.SourceVolumeMode = of(corev1.PersistentVolumeBlock) })), ours},
	})
}
