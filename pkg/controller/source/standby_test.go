// SPDX-License-Identifier: Apache-2.0

package source

import (
	"testing"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// TestStandbyFindsAnEndThatItHeard: whatever --snapshot-orphan-sweep-interval says of those before this process, a source whose last claim's end was
// heard here, by a standby that could not keep all it heard, is among all. Catches a finalizer that stays for ever.
func TestStandbyFindsAnEndThatItHeard(t *testing.T) {
	snap := &snapv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "snap", UID: "s", ResourceVersion: "1", Finalizers: []string{wellknown.FinalizerSnapshotAsSource}}}
	claims, snapshots := kube.NewStore(kube.ClaimIndexes()), kube.NewStore(kube.SnapshotIndexes())
	snapshots.Show(snap)
	c := New(Options{CloneThreads: 1, SweepInterval: 0}, Deps{Claims: claims, Snapshots: snapshots, RetryStart: time.Second, RetryMax: time.Minute})
	group := wellknown.SnapshotGroup
	gone := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "c", ResourceVersion: "2"},
		Spec:       corev1.PersistentVolumeClaimSpec{DataSource: &corev1.TypedLocalObjectReference{APIGroup: &group, Kind: wellknown.KindVolumeSnapshot, Name: "snap"}},
	}
	want := reconcile.Key{Namespace: "ns", Name: "snap"}
	if heard := c.SnapshotsOfClaim(kube.Change[*corev1.PersistentVolumeClaim]{Old: gone, Deleted: true}); len(heard) != 1 || heard[0] != want {
		t.Fatal(heard)
	}
	if all := c.allSnapshots(); len(all) != 1 || all[0] != want {
		t.Errorf("among all are %v", all)
	}
}
