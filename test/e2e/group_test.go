// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/csi-tandem/csi-tandem/test/stage"
)

// TestGroupsAreToldOf: group snapshots are not built, and who asks for one of our driver, or waits for the end of one that another
// sidecar took, is told so; one of another driver is none of our business. Catches somebody who waits without a word.
func TestGroupsAreToldOf(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{withoutSnapshotter: true})
	kinds, err := os.ReadFile("testdata/groupsnapshots.yaml")
	w.mustNot(err)
	w.mustNot(w.stage.Cluster.ApplyBytes(w.ctx, kinds, ""))
	const group = "{apiVersion: groupsnapshot.storage.k8s.io/v1, kind: VolumeGroupSnapshot, metadata: {name: %s, finalizers: [%s]}, spec: {volumeGroupSnapshotClassName: %s, source: {selector: {matchLabels: {app: db}}}}}\n---\n"
	const class = "{apiVersion: groupsnapshot.storage.k8s.io/v1, kind: VolumeGroupSnapshotClass, metadata: {name: %s}, driver: %s, deletionPolicy: Delete}\n---\n"
	const held = "groupsnapshot.storage.kubernetes.io/volumegroupsnapshot-bound-protection"
	ours, theirs := w.ns+"-ours", w.ns+"-theirs"
	manifest := fmt.Sprintf(class+class+group+group+group, ours, w.driver, theirs, "other.csi.example", "nightly", "", ours, "elsewhere", "", theirs, "leaving", held, ours)
	w.await("groups can be written", func() (bool, string) {
		if err := w.stage.Cluster.ApplyBytes(w.ctx, []byte(manifest), w.ns); err != nil {
			return unreadable(err)
		}
		return true, ""
	})
	groups := w.snaps.RESTClient().Delete().AbsPath("/apis/groupsnapshot.storage.k8s.io/v1/namespaces/" + w.ns + "/volumegroupsnapshots/leaving")
	w.mustNot(groups.Do(w.ctx).Error())
	w.snapshotter, err = w.cast.StartSidecar(stage.Snapshotter)
	w.mustNot(err)
	w.told("nightly", "Warning GroupSnapshotNotSupported", w.ns+"/nightly is not taken", "make a VolumeSnapshot of each claim")
	w.told("leaving", "Warning GroupSnapshotNotSupported", w.ns+"/leaving is not deleted", "until it is gone")
	if told := w.messages("elsewhere"); len(told) > 0 {
		t.Errorf("told of another driver's group: %q", told)
	}
	w.mustNot(w.stage.Cluster.ApplyBytes(w.ctx, []byte(strings.TrimSuffix(fmt.Sprintf(group, "leaving", "", ours), "---\n")), w.ns))
	w.mustNot(w.stage.Cluster.DeleteBytes(w.ctx, fmt.Appendf(nil, class+class, ours, w.driver, theirs, "other.csi.example"), ""))
}
