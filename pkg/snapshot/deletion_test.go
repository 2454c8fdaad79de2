// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

func TestDeletedSnapshotIsTakenApart(t *testing.T) {
	keep := func(i *SnapshotInput) { i.Content.Spec.DeletionPolicy = snapv1.VolumeSnapshotContentRetain }
	mark := func(i *SnapshotInput) {
		i.Content.Annotations = map[string]string{wellknown.AnnBeingDeleted: "yes"}
	}
	going := func(i *SnapshotInput) { i.Content.DeletionTimestamp = ptr(past) }
	elsewhere := func(i *SnapshotInput) { i.Content.Spec.VolumeSnapshotRef.UID = "u2" }
	free := func(i *SnapshotInput) { i.Claim.Finalizers = nil }
	restoring := func(i *SnapshotInput) { i.Restoring = []string{"r"} }
	checkSnapshots(t, []snapshotRow{
		{"S68 the content first; our own other half needs no mark", in(ready, deleted, free), DeleteContent{}},
		// A snapshotter that serves one node sees no snapshots: without the mark it would never delete.
		{"S97 that of a node needs it", in(ready, deleted, func(i *SnapshotInput) { i.Options.Distributed = true }), MarkContent{}},
		{"S100 a sidecar of others needs it", in(ready, deleted, all), MarkContent{}},
		{"S100 and then the deletion", in(ready, deleted, all, mark), DeleteContent{}},
		{"S69 Retain: mark", in(ready, deleted, keep), MarkContent{}},
		{"S69 Retain: the source before the finalizers", in(ready, deleted, keep, mark), ReleaseSource{}},
		{"S69 Retain: then the snapshot goes, the content stays", in(ready, deleted, keep, mark, free), Release{both}},
		{"S70 the content's policy counts, not the class's", in(ready, deleted, free, keep, mark, func(i *SnapshotInput) {
			i.Class.DeletionPolicy = snapv1.VolumeSnapshotContentDelete
		}), Release{both}},
		{"the source need not wait for the driver", in(ready, deleted, going), ReleaseSource{}},
		{"S68 the snapshot waits for its content", in(ready, deleted, going, free), Ignore{}},
		{"S85 a restore comes before everything", in(ready, deleted, all, restoring, func(i *SnapshotInput) {
			i.Snapshot.DeletionTimestamp = ptr(metav1.NewTime(i.Now.Add(-59 * time.Second)))
		}), WaitForRestore{[]string{"r"}}},
		{"S85 but not for ever: a claim that has not protected it is refused", in(ready, deleted, all, restoring), MarkContent{}},
		{"S85 one that has protected it is waited for", in(ready, deleted, all, restoring, func(i *SnapshotInput) {
			i.Snapshot.Finalizers = append(i.Snapshot.Finalizers, wellknown.FinalizerSnapshotAsSource)
		}), WaitForRestore{[]string{"r"}}},
		{"S85 a restore whose claim is gone still reads", in(ready, deleted, all, func(i *SnapshotInput) {
			i.Snapshot.Finalizers = append(i.Snapshot.Finalizers, wellknown.FinalizerSnapshotAsSource)
		}), WaitForRestore{}},
		{"W10 gone in the cache is not gone", in(held, deleted, free), FetchContent{"snapcontent-u1"}},
		{"S77 certainly gone", in(held, deleted, free, certain), Release{both}},
		{"S38 W30 B017 the source is counted, not the light turned off", in(held, deleted, certain), ReleaseSource{}},
		{"S37 others still need it", in(held, deleted, certain, func(i *SnapshotInput) { i.ClaimInUse = true }), Release{both}},
		{"S78 a content that no status names is found by its name", in(taken, deleted), DeleteContent{}},
		{"S87 W22 neither class nor claim is needed", in(ready, deleted, func(i *SnapshotInput) { i.Class, i.Claim = nil, nil }), DeleteContent{}},
		{"S89 B007 somebody else's content is made sure of", in(imported, deleted, elsewhere), FetchContent{"c"}},
		{"S44 S89 and left alone", in(imported, deleted, elsewhere, certain), Release{both}},
		{"S90 only others hold it", in(ready, deleted, func(i *SnapshotInput) { i.Snapshot.Finalizers = []string{"x/y"} }), Ignore{}},
		{"only one finalizer, as others leave it", in(held, deleted, free, certain, func(i *SnapshotInput) { i.Snapshot.Finalizers = both[1:] }), Release{both[1:]}},
	})
}

func TestDeletedSnapshotOfNobody(t *testing.T) {
	lost := func(i *SnapshotInput) { i.Class, i.Claim = nil, nil }
	since := func(d time.Duration) func(*SnapshotInput) {
		return func(i *SnapshotInput) { i.Snapshot.DeletionTimestamp = ptr(metav1.NewTime(now.Add(-d))) }
	}
	checkSnapshots(t, []snapshotRow{
		{"its content was seen to go", in(held, deleted, lost, certain, func(i *SnapshotInput) { i.GoneDriver = driverName }), Release{both}},
		{"the content of another driver was", in(held, deleted, lost, certain, func(i *SnapshotInput) { i.GoneDriver = "other" }), Ignore{}},
		{"the volume can tell when the class cannot", in(held, deleted, func(i *SnapshotInput) { i.Class, i.VolumeRead = nil, false }), FetchVolume{"pv1"}},
		{"is there a content after all", in(held, deleted, lost), FetchContent{"snapcontent-u1"}},
		{"its owner has time", in(held, since(10*time.Second), lost, certain), Wait{After: 20 * time.Second}},
		{"then it goes", in(held, since(time.Minute), lost, certain), Release{both}},
		{"not ours at all", in(deleted, lost), Ignore{}},
	})
}

func TestRestoresFrom(t *testing.T) {
	group, ns2 := "snapshot.storage.k8s.io", "ns2"
	claim := func(source *corev1.TypedLocalObjectReference, ref *corev1.TypedObjectReference) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns1"}, Spec: corev1.PersistentVolumeClaimSpec{DataSource: source, DataSourceRef: ref}}
	}
	local := &corev1.TypedLocalObjectReference{APIGroup: &group, Kind: "VolumeSnapshot", Name: "snap"}
	for _, c := range []struct {
		name string
		in   *corev1.PersistentVolumeClaim
		want []string
	}{
		{"nothing", claim(nil, nil), nil},
		{"S85 both fields say the same", claim(local, &corev1.TypedObjectReference{APIGroup: &group, Kind: "VolumeSnapshot", Name: "snap"}), []string{"ns1/snap"}},
		{"W19 another namespace", claim(nil, &corev1.TypedObjectReference{APIGroup: &group, Kind: "VolumeSnapshot", Name: "snap", Namespace: &ns2}), []string{"ns2/snap"}},
		{"W19 no API group", claim(&corev1.TypedLocalObjectReference{Kind: "VolumeSnapshot", Name: "snap"}, nil), nil},
		{"a clone", claim(&corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "snap"}, nil), nil},
	} {
		if diff := cmp.Diff(c.want, RestoresFrom(c.in)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	if bound := in().Claim; IsRestoring(bound) || !IsRestoring(claim(local, nil)) {
		t.Error("only a claim without volume is still being filled")
	}
}

func TestUsesSource(t *testing.T) {
	for _, c := range []struct {
		name string
		in   SnapshotInput
		want bool
	}{
		{"living and unready", in(taken), true},
		{"S2 ready", in(ready), false},
		{"W30 being deleted", in(taken, deleted), false},
		{"imported", in(imported), false},
	} {
		if got := UsesSource(c.in.Snapshot); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
