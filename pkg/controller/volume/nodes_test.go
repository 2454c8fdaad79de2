// SPDX-License-Identifier: Apache-2.0

package volume_test

import (
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/volume"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestEachNodeDeletesItsOwn has a room and a driver on each of three nodes, and the volume at the driver of n2. A driver
// that does not have a volume says that it is gone, so that any other room would let the PersistentVolume go.
func TestEachNodeDeletesItsOwn(t *testing.T) {
	made := func(by string) func(*corev1.PersistentVolume) {
		return func(v *corev1.PersistentVolume) {
			v.Spec.CSI.VolumeAttributes = map[string]string{wellknown.VolumeAttributeIdentity: "1-2-" + kit.DriverName + by}
		}
	}
	reachable := func(hosts ...string) func(*corev1.PersistentVolume) {
		return func(v *corev1.PersistentVolume) {
			v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "host", Operator: corev1.NodeSelectorOpIn, Values: hosts}},
			}}}}
		}
	}
	all := []string{remove, unprotect, drop}
	for _, c := range []struct {
		name string
		v    *corev1.PersistentVolume
		down string
		want []string
		left int
	}{
		{name: "T100 by its affinity", v: released(made(""), reachable("n2")), want: all},
		{name: "T100 by who made it, without an affinity", v: released(made("-n2")), want: all},
		{name: "P-11 reachable from everywhere, and once", v: released(made("-n2"), reachable("n1", "n2", "n3")), want: all},
		{name: "T100 its node is gone: nothing, until it is back", v: released(made("-n2"), reachable("n2")), down: "n2", left: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			drivers := map[string]*kit.Driver{}
			for _, node := range []string{"n1", "n2", "n3"} {
				drivers[node] = kit.NewDriver(h.Clock, h.Log)
			}
			kept, err := drivers["n2"].CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "v", VolumeCapabilities: []*csi.VolumeCapability{{}}})
			if err != nil {
				t.Fatal(err)
			}
			c.v.Spec.CSI.VolumeHandle = kept.GetVolumeId()
			h.Put(c.v)
			for _, node := range []string{"n1", "n2", "n3"} {
				if node == c.down {
					continue
				}
				room := volume.New(volume.Deps{
					Client: h.API, Driver: drivers[node], DriverName: kit.DriverName, Capabilities: h.Driver.Capabilities,
					Recorder: h.Recorder, Clock: h.Clock, Patience: time.Minute,
					Local:   provision.Local{Node: node, Segment: topology.SegmentOf(map[string]string{"host": node})},
					Volumes: h.Stores.Volumes, Classes: h.Stores.StorageClasses, Attachments: h.Stores.Attachments, Claims: h.Stores.Claims,
					RetryStart: h.RetryStart, RetryMax: h.RetryMax,
				})
				h.Add(kit.Room{Name: node, Reconcile: room.Reconcile, Keys: kit.On(room.KeysOfVolume)})
			}
			h.Settle()
			if d := cmp.Diff(c.want, h.Log.Lines()); d != "" {
				t.Errorf("effects of all three rooms (-want +got):\n%s", d)
			}
			if left := len(drivers["n2"].Inventory()); left != c.left {
				t.Errorf("%d volumes are left at their driver", left)
			}
		})
	}
}
