// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/examples/driver/script"
)

// distortions by the names that the tables have for them.
var distortions = map[string]script.Distortion{
	"TooSmall": script.TooSmall, "NoContentSource": script.NoContentSource,
	"NoVolume": script.NoVolume, "NoVolumeID": script.NoVolumeID,
	"NoSnapshot": script.NoSnapshot, "NoSnapshotID": script.NoSnapshotID,
}

// The patches play people and other controllers, who write what they like.

func patchContent(w *world, name, body string) {
	w.Helper()
	w.must(w.snaps.VolumeSnapshotContents().Patch(w.ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{}))
}

func patchContentStatus(w *world, name, body string) {
	w.Helper()
	w.must(w.snaps.VolumeSnapshotContents().Patch(w.ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, "status"))
}

func patchSnapshotStatus(w *world, name, body string) {
	w.Helper()
	w.must(w.snaps.VolumeSnapshots(w.ns).Patch(w.ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, "status"))
}
