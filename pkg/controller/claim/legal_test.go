// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestOnlyLegalSnapshots (B035): whatever is wrong with a snapshot, nothing reaches the driver, the user hears which object to
// look at, and the restore goes on as soon as the snapshot is legal. An old error beside a ready snapshot is no reason.
func TestOnlyLegalSnapshots(t *testing.T) {
	snap := kube.Key{Namespace: kit.Namespace, Name: "snap"}
	onContent := func(edit func(*kube.Content)) func(*kit.Harness) {
		return func(h *kit.Harness) {
			kit.Edit(h.API, kube.Key{Name: contentOf(h, snap)}, edit)
		}
	}
	for _, c := range []struct {
		name string
		spoil,
		mend func(*kit.Harness)
		says []string
	}{
		{
			"B035 not ready",
			func(h *kit.Harness) {
				kit.Edit(h.API, snap, func(s *snapv1.VolumeSnapshot) { s.Status.ReadyToUse = kit.Ptr(false) })
			},
			func(h *kit.Harness) {
				kit.Edit(h.API, snap, func(s *snapv1.VolumeSnapshot) { s.Status.ReadyToUse = kit.Ptr(true) })
			},
			[]string{"snapshot snap is not Ready"},
		},
		{
			"B035 bound to a content that is another's",
			onContent(func(c *kube.Content) { c.Spec.VolumeSnapshotRef.UID = "other" }),
			func(h *kit.Harness) {
				s, _ := kit.Read[*snapv1.VolumeSnapshot](h.API, snap)
				onContent(func(c *kube.Content) { c.Spec.VolumeSnapshotRef.UID = s.UID })(h)
			},
			[]string{"snapshotcontent ", " for snapshot snap is bound to a different snapshot"},
		},
		{
			"B035 of another driver",
			onContent(func(c *kube.Content) { c.Spec.Driver = "other.example" }),
			onContent(func(c *kube.Content) { c.Spec.Driver = kit.DriverName }),
			[]string{"is not handled by CSI driver of StorageClass " + kit.ClassName},
		},
		{
			"B035 its content is not there",
			func(h *kit.Harness) {
				kit.Edit(h.API, snap, func(s *snapv1.VolumeSnapshot) { s.Status.BoundVolumeSnapshotContentName = kit.Ptr("nowhere") })
			},
			func(h *kit.Harness) {
				content := kit.All[*kube.Content](h.API)[0].Name
				kit.Edit(h.API, snap, func(s *snapv1.VolumeSnapshot) { s.Status.BoundVolumeSnapshotContentName = &content })
			},
			[]string{"error getting snapshotcontent nowhere for snapshot snap"},
		},
		{
			"B035 ready, with an old error", func(h *kit.Harness) {
				kit.Edit(h.API, snap, func(s *snapv1.VolumeSnapshot) { s.Status.Error = &snapv1.VolumeSnapshotError{Message: kit.Ptr("old")} })
			}, nil, nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := restoring(t)
			c.spoil(h)
			start(h)
			h.Horizon = 0
			h.Settle()
			if c.mend != nil {
				said := strings.Join(h.Recorder.Events(), "\n")
				for _, part := range append(c.says, "ProvisioningFailed", "VolumeSnapshot by Name snap") {
					if !strings.Contains(said, part) {
						t.Errorf("%q does not say %q", said, part)
					}
				}
				if len(requests(h)) != 1 { // that of the source volume
					t.Error("the driver was asked")
				}
				c.mend(h)
			}
			h.Horizon = 10 * time.Minute
			h.Settle()
			if _, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name}); !ok {
				t.Errorf("the restore did not go on:\n%s", h.Trace())
			}
		})
	}
}

func contentOf(h *kit.Harness, snapshot kube.Key) string {
	s, _ := kit.Read[*snapv1.VolumeSnapshot](h.API, snapshot)
	return *s.Status.BoundVolumeSnapshotContentName
}

// TestRestoreAwayFromItsData (B089): the scheduler has selected a node that cannot reach the data; the claim goes back to it.
func TestRestoreAwayFromItsData(t *testing.T) {
	h := restoring(t)
	h.Driver.Capabilities = capability.Of([]capability.Plugin{
		csi.PluginCapability_Service_CONTROLLER_SERVICE, csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS,
	}, csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT)
	h.Put(kit.Class(kit.ClassName, kit.WaitForConsumer))
	h.Put(twoZones()...)
	h.Put(kit.Volume("source", func(v *corev1.PersistentVolume) {
		v.Spec.CSI.VolumeHandle = kit.VolumeHandle("source")
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}},
		}}}}
	}))
	kit.Edit(h.API, dataKey, kit.OnNode("n2"))
	h.Driver.Next("CreateVolume", kit.Reply{Code: codes.InvalidArgument, Text: "not here"})
	start(h)
	h.Settle()
	want(t, h, protect, "driver CreateVolume "+name+" → InvalidArgument",
		failed+`rpc error: code = InvalidArgument desc = not here; the data of the source is in {zone: a} only, and the selected node "n2" is not; let the pod run there, for instance by a node selector`,
		giveUp)
	kit.Edit(h.API, dataKey, kit.OnNode("n1"))
	h.Settle()
	if _, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name}); !ok {
		t.Error("the claim has no volume")
	}
}
