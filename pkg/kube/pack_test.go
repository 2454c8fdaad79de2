// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

func packedMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: "x", Namespace: "n", UID: "u", ResourceVersion: "7", CreationTimestamp: metav1.Unix(1_800_000_000, 0),
		DeletionTimestamp: ptr.To(metav1.Unix(1_800_000_100, 0)),
		Finalizers:        []string{wellknown.FinalizerContent, "example.com/theirs", wellknown.FinalizerVolume, "kubernetes.io/pvc-protection"},
		Annotations:       map[string]string{wellknown.AnnDeletionSecretName: "~1", "example.com/theirs": wellknown.AnnDeletionSecretName, wellknown.AnnBeingCreated: "yes"},
	}
}

// What a cache packs comes out as it was. Catches a field that the short form does not have, such as the group handle that the
// types of the clients do not know, words that are not translated back, and a caller's object that stays translated.
func TestNothingIsLostInPacking(t *testing.T) {
	content := &Content{groupHandle: "group-1", VolumeSnapshotContent: snapv1.VolumeSnapshotContent{
		ObjectMeta: packedMeta(),
		Spec: snapv1.VolumeSnapshotContentSpec{
			Driver: "d", DeletionPolicy: snapv1.VolumeSnapshotContentRetain, SourceVolumeMode: ptr.To(corev1.PersistentVolumeBlock),
			Source: snapv1.VolumeSnapshotContentSource{SnapshotHandle: ptr.To("h")}, VolumeSnapshotRef: corev1.ObjectReference{Name: "s", UID: "v"},
		},
		Status: &snapv1.VolumeSnapshotContentStatus{CreationTime: ptr.To(int64(1767268800123456789)), ReadyToUse: ptr.To(false), RestoreSize: ptr.To(int64(1))},
	}}
	later := metav1.NewTime(time.Unix(1_800_000_050, 0))
	snapshot := &snapv1.VolumeSnapshot{
		ObjectMeta: packedMeta(), Spec: snapv1.VolumeSnapshotSpec{VolumeSnapshotClassName: ptr.To("")},
		Status: &snapv1.VolumeSnapshotStatus{RestoreSize: ptr.To(resource.MustParse("1Gi")), CreationTime: &later, Error: &snapv1.VolumeSnapshotError{Message: ptr.To("no")}},
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: packedMeta(), Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv"}}
	bare := &Content{VolumeSnapshotContent: snapv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: "bare"}}}

	equal := cmp.Options{cmp.AllowUnexported(Content{})}
	for _, row := range []struct {
		name          string
		before, after Object
		whole         Object
	}{
		{"content", content.DeepCopy(), &Content{}, content},
		{"content without anything", bare.DeepCopy(), &Content{}, bare},
		{"snapshot", snapshot.DeepCopy(), &snapv1.VolumeSnapshot{}, snapshot},
		{"claim", claim.DeepCopy(), &corev1.PersistentVolumeClaim{}, claim},
	} {
		t.Run(row.name, func(t *testing.T) {
			data, err := encode(row.before)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(row.whole, row.before, equal); diff != "" {
				t.Errorf("the object itself has changed: %s", diff)
			}
			if err := decode(data, row.after); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(row.whole, row.after, equal); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// PP-3: catches words that are spelled out in each of thousands of objects.
func TestKnownWordsAreShortWhenPacked(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Finalizers:  []string{"kubernetes.io/pvc-protection"},
		Annotations: map[string]string{wellknown.AnnStorageProvisioner: "d", wellknown.AnnBetaStorageProvisioner: "d"},
	}}
	data, err := encode(claim)
	if err != nil || len(data) > 60 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	for code, word := range meanings {
		if codes[word] != code || len(code) >= len(word) {
			t.Errorf("%q stands for %q", code, word)
		}
	}
}
