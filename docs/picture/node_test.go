// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/controller/volume"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// onNode puts the provisioner of one node into a world.
func onNode(h *kit.Harness, name string) {
	segment := topology.SegmentOf(map[string]string{"host": name})
	index := topology.NewIndex()
	index.SetNode(name, segment.Labels())
	index.SetDriverKeys(name, []string{"host"})
	options := claim.NewOptions()
	options.NodeDeployment = true
	local := options.Serving(name, segment)
	claims := claim.New(*options, claim.Deps{
		Client: h.API, Driver: h.Driver, Surveyor: h.Driver, DriverName: kit.DriverName, Identity: "1-2-" + kit.DriverName + "-" + name,
		Capabilities: h.Driver.Capabilities, Recorder: h.Recorder, Clock: h.Clock, Topology: index, Local: local,
		Claims: h.Stores.Claims, Volumes: h.Stores.Volumes, Classes: h.Stores.StorageClasses, RetryStart: h.RetryStart, RetryMax: h.RetryMax,
	})
	volumes := volume.New(volume.Deps{
		Client: h.API, Driver: h.Driver, DriverName: kit.DriverName, Capabilities: h.Driver.Capabilities, Recorder: h.Recorder, Clock: h.Clock,
		Volumes: h.Stores.Volumes, Classes: h.Stores.StorageClasses, Claims: h.Stores.Claims, Attachments: h.Stores.Attachments,
		RetryStart: h.RetryStart, RetryMax: h.RetryMax, Local: local, Patience: options.Racing.Max,
	})
	h.Add(
		kit.Room{Name: "claims of " + name, Reconcile: claims.Reconcile, Keys: kit.Feeds(kit.On(claims.KeysOfClaim), kit.On(claims.KeysOfClass))},
		kit.Room{Name: "volumes of " + name, Reconcile: volumes.Reconcile, Keys: kit.On(volumes.KeysOfVolume)},
	)
}

// TestWalkOnNodes: who has more room takes the claim, and sees to the volume's end. The other one does nothing but ask.
func TestWalkOnNodes(t *testing.T) {
	h := kit.New(t)
	h.Driver.Capacity = func(r *csi.GetCapacityRequest) *csi.GetCapacityResponse {
		free := map[string]int64{"a": 100 << 30, "b": 2 << 30}[r.GetAccessibleTopology().GetSegments()["host"]]
		return &csi.GetCapacityResponse{AvailableCapacity: free}
	}
	h.Play(kit.Binder(h.API))
	h.Put(kit.Class(kit.ClassName))
	onNode(h, "a")
	onNode(h, "b")
	h.Settle()
	s := begin(h)
	h.Put(kit.Claim("data"))
	h.Settle()
	if claim, _ := kit.Read[*corev1.PersistentVolumeClaim](h.API, kube.Key{Namespace: kit.Namespace, Name: "data"}); claim.Annotations[wellknown.AnnSelectedNode] != "a" {
		t.Errorf("the claim went to %q", claim.Annotations[wellknown.AnnSelectedNode])
	}
	kit.Remove[*corev1.PersistentVolumeClaim](h.API, key("data"))
	h.Settle()
	s.matchesDone(t, shown(t, "walk-node", ""))
}
