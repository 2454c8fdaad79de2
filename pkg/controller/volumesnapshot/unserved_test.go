// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"strings"
	"testing"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// gone is a world with a driver that was removed: its class and its volumes are still there.
func gone(t *testing.T) (*kit.Harness, *prometheus.Registry) {
	t.Helper()
	h := kit.New(t)
	disk(h)
	kit.Edit(h.API, kube.Key{Name: "pv-data"}, func(v *corev1.PersistentVolume) { v.Spec.CSI.Driver = "gone.example" })
	h.Put(kit.SnapshotClass(kit.SnapshotClassName, func(c *snapv1.VolumeSnapshotClass) { c.Driver = "gone.example" }))
	c, room := binder(h, All)
	registry := prometheus.NewRegistry()
	c.neglected = newUnserved(registry)
	h.Add(room)
	return h, registry
}

// TestDriverThatNobodyServes (B079, W32): a binder that only waited for the driver would say nothing, and was seen to fail
// here; so was one that tells it at every look.
func TestDriverThatNobodyServes(t *testing.T) {
	h, registry := gone(t)
	userTakes("snap")(h)
	h.Horizon = time.Minute
	h.Settle()
	if warnings(h, wellknown.ReasonSnapshotUnserved) > 0 {
		t.Fatalf("told too early: %v", h.Recorder.Events())
	}
	h.Horizon = time.Hour
	h.Settle()
	for range 3 {
		h.Enqueue("binder", keyOf(kit.Snapshot("snap", "data")))
		h.Settle()
	}
	if n := warnings(h, wellknown.ReasonSnapshotUnserved); n != 1 || gauge(t, registry, "csi_tandem_snapshots_unserved") != 1 {
		t.Errorf("told %d times: %v", n, h.Recorder.Events())
	}
	// The sidecar comes after all.
	kit.Edit(h.API, kube.KeyOf(kit.All[*kube.Content](h.API)[0]), kit.Taken("handle-1"))
	h.Settle()
	wantReady("snap")(t, h)
	if got := gauge(t, registry, "csi_tandem_snapshots_unserved"); got != 0 {
		t.Errorf("served, and the metric says %v", got)
	}
}

// TestDeletionWithoutTheDriver (B079): what nobody will ever delete can be let go by an annotation, and users are told of it.
func TestDeletionWithoutTheDriver(t *testing.T) {
	h, registry := gone(t)
	userTakes("snap")(h)
	h.Settle()
	content := kit.All[*kube.Content](h.API)[0]
	kit.Edit(h.API, kube.KeyOf(content), kit.Taken("handle-1"))
	h.Settle()
	userDeletes("snap")(h)
	h.Horizon = time.Hour
	h.Settle()
	events := strings.Join(h.Recorder.Events(), "\n")
	if !strings.Contains(events, "annotate the content with csi-tandem.io/driver-gone=yes") || len(kit.All[*kube.Content](h.API)) != 1 {
		t.Fatalf("nobody is told what to do: %s", events)
	}
	kit.Edit(h.API, kube.KeyOf(content), func(c *kube.Content) { kube.SetAnnotation(c, wellknown.AnnDriverGone, "yes") })
	h.Settle()
	wantNothing(t, h)
	if n := warnings(h, wellknown.ReasonSnapshotAbandoned); n != 2 || gauge(t, registry, "csi_tandem_snapshots_unserved") != 0 {
		t.Errorf("told %d times, on snapshot and content: %v", n, h.Recorder.Events())
	}
}

// TestNodeThatDoesNotComeBack (S96, B079): one node's snapshotter binds, and the node that a content is for is gone. Catches a binder that
// takes its own mark for a sign of that node's sidecar, and all contents of its own driver for ones that it serves itself: nobody
// is told then, and the annotation that lets a content go is not heard.
func TestNodeThatDoesNotComeBack(t *testing.T) {
	h := kit.New(t)
	disk(h)
	c, room := binder(h, Own, func(d *Deps) {
		d.Node, d.NodeOf = "n2", func(*corev1.PersistentVolume) (string, error) { return "n1", nil }
	})
	c.options.Distributed = true
	h.Add(room)
	userTakes("snap")(h)
	h.Horizon = time.Hour
	h.Settle()
	if n := warnings(h, wellknown.ReasonSnapshotUnserved); n != 1 {
		t.Errorf("told %d times that nobody takes the snapshot: %v", n, h.Recorder.Events())
	}
	userDeletes("snap")(h)
	h.Settle()
	content := only(t, h)
	if n := warnings(h, wellknown.ReasonSnapshotUnserved); n != 2 || content.DeletionTimestamp == nil || content.Annotations[wellknown.AnnBeingDeleted] != "yes" {
		t.Errorf("told %d times, the second time that nobody deletes it: %v", n, h.Recorder.Events())
	}
	kit.Edit(h.API, kube.KeyOf(content), func(c *kube.Content) { kube.SetAnnotation(c, wellknown.AnnDriverGone, "yes") })
	h.Settle()
	wantNothing(t, h)
}
