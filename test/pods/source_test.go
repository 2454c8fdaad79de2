// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/test/stage"
)

// TestRestoreElsewhere: a snapshot is restored by a pod of another namespace, when the owner has agreed and not before.
func TestRestoreElsewhere(t *testing.T) {
	t.Parallel()
	w := begin(t)
	home, guest := w.ns, w.ns+"-guest"
	w.namespace(guest)
	w.claim("source", immediate)
	w.pod("writer", "source")
	w.says(w.runs("writer"), "echo lent > /data/file && sync && echo ok", "ok")
	w.snapshot("snap", "source")
	w.ready("snap")
	w.explain(shared.snapshotter, "snap", "ready")

	w.ns = guest
	w.claim("restored", immediate, func(c *corev1.PersistentVolumeClaim) {
		c.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: ptr.To(snapGroup), Kind: "VolumeSnapshot", Name: "snap", Namespace: ptr.To(home)}
	})
	w.pod("reader", "restored")
	w.explain(shared.provisioner, "restored", "isn't allowed")

	w.must(shared.stage.AddGrants(w.ctx))
	grant := stage.Grant(guest, snapGroup, "VolumeSnapshot")
	w.await("the grant can be written", func() (bool, string) {
		if err := shared.stage.Cluster.ApplyBytes(w.ctx, grant, home); err != nil {
			return false, err.Error()
		}
		return true, ""
	})
	w.says(w.runs("reader"), "cat /data/file", "lent")
	w.ns = home
}

// TestSnapshotThatTakesItsTime: the restore waits for the snapshot, its pod for the restore, and both explain it.
func TestSnapshotThatTakesItsTime(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.claim("source", immediate)
	w.pod("writer", "source")
	w.says(w.runs("writer"), "echo old > /data/file && sync && echo ok", "ok")
	rule, err := shared.cast.Control.ReadyAfter(w.ctx, "", time.Hour)
	w.must(err)
	w.snapshot("snap", "source")
	w.explain(shared.snapshotter, "snap", "Waits")
	w.claim("restored", immediate, fromSnapshot("snap"))
	w.explain(shared.provisioner, "restored", "snapshotter explain -n "+w.ns+" snap")
	w.pod("reader", "restored")
	w.must(shared.cast.Control.Release(w.ctx, rule))
	w.ready("snap")
	w.says(w.runs("reader"), "cat /data/file", "old")
}
