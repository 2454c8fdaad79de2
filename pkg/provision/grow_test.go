// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The driver had rounded 50Mi up to 1Gi when the snapshot's volume was made.
func TestSmallRestores(t *testing.T) {
	const refused = "Reject: error getting handle for DataSource Type VolumeSnapshot by Name snap: "
	grow := func(in *ClaimInput) { in.RestoreSize = GrowSmaller }
	limit := func(size string) func(*ClaimInput) {
		return func(in *ClaimInput) {
			in.Claim.Spec.Resources.Limits = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
		}
	}
	runClaims(t, []claimRow{
		{"B033 by default it is refused", restore(asks("50Mi")), refused + "requested volume size 52428800 is less than the size 1073741824 for the source snapshot snap"},
		{"B033 grow", restore(grow, asks("50Mi")), ours},
		{"B033 a limit of the claim forbids to grow", restore(grow, asks("50Mi"), limit("100Mi")), refused + "requested volume size 52428800 is less than the size 1073741824 for the source snapshot snap"},
		{"B033 a limit that is wide enough", restore(grow, asks("50Mi"), limit("1Gi")), ours},
		{"B033 a clone does not grow", clone(grow, asks("50Mi")), "Reject: error getting handle for DataSource Type PersistentVolumeClaim by Name src: error, new PVC request must be greater than or equal in size to the specified PVC data source, requested 52428800 but source is 1073741824"},
		{"B033 the other checks stay", restore(grow, asks("50Mi"), block), refused + "requested volume ns1/data modifies the mode of the source volume but does not have permission to do so. snapshot.storage.kubernetes.io/allow-volume-mode-change annotation is not present on snapshotcontent content"},
	})
	for _, c := range []struct {
		name  string
		edits []func(*ClaimInput)
		want  int64
	}{
		{"B033 grown", restore(grow, asks("50Mi")), 1 << 30},
		{"B033 larger than the snapshot", restore(grow, asks("2Gi")), 2 << 30},
		{"B033 restore size not known", restore(grow, asks("50Mi"), snapshotIs(func(s *snapv1.VolumeSnapshot) { s.Status.RestoreSize = nil })), 50 << 20},
		{"B033 restore size 0", restore(grow, asks("50Mi"), snapshotIs(func(s *snapv1.VolumeSnapshot) { s.Status.RestoreSize = of(resource.MustParse("0")) })), 50 << 20},
		{"B033 no source", edits{grow, asks("50Mi")}, 50 << 20},
	} {
		attempt := created(t, plain(c.edits...))
		if got := attempt.Request.GetCapacityRange().GetRequiredBytes(); got != c.want {
			t.Errorf("%s: the driver is asked for %d, want %d", c.name, got, c.want)
		}
	}
	attempt := created(t, plain(restore(grow, asks("50Mi"))...))
	for made, want := range map[int64]string{0: "1Gi", 1 << 30: "1Gi", 3 << 30: "3Gi"} {
		volume := &csi.Volume{VolumeId: "h", CapacityBytes: made, ContentSource: attempt.Request.GetVolumeContentSource()}
		built, err := BuildVolume(attempt, volume)
		if err != nil {
			t.Fatal(err)
		}
		if got := built.Spec.Capacity.Storage().String(); got != want {
			t.Errorf("B033: the driver made %d and the PersistentVolume has %s, want %s", made, got, want)
		}
	}
}
