// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"context"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

var dataKey = kube.Key{Namespace: kit.Namespace, Name: "data"}

// name is what the volume of the claim "data" is called.
var name = "pvc-" + string(kit.UIDOf("persistentvolumeclaims", kit.Namespace, "data", 0))

// dataUID is the key of that claim.
var dataUID = reconcile.Key{Namespace: dataKey.Namespace, Name: dataKey.Name, UID: kit.UIDOf("persistentvolumeclaims", kit.Namespace, "data", 0)}

// can is a driver without topology, and with more than volumes where a test needs it.
func can(more ...capability.Controller) capability.Set {
	plugins := []capability.Plugin{csi.PluginCapability_Service_CONTROLLER_SERVICE}
	return capability.Of(plugins, append(more,
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		csi.ControllerServiceCapability_RPC_CLONE_VOLUME, csi.ControllerServiceCapability_RPC_MODIFY_VOLUME)...)
}

func withTopology() capability.Set {
	plugins := []capability.Plugin{
		csi.PluginCapability_Service_CONTROLLER_SERVICE, csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS,
	}
	return capability.Of(plugins, csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME)
}

// start adds the room to a world, with edited dependencies.
func start(h *kit.Harness, edits ...func(*claim.Options, *claim.Deps)) *claim.Controller {
	options := claim.NewOptions()
	deps := claim.Deps{
		Client: h.API, Driver: h.Driver, DriverName: kit.DriverName, Identity: "id-1", Capabilities: h.Driver.Capabilities,
		Recorder: h.Recorder, Clock: h.Clock, Topology: h.Topology,
		Claims: h.Stores.Claims, Volumes: h.Stores.Volumes, Classes: h.Stores.StorageClasses,
		RetryStart: h.RetryStart, RetryMax: h.RetryMax,
	}
	for _, edit := range edits {
		edit(options, &deps)
	}
	c := claim.New(*options, deps)
	work := func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
		if deps.Record != nil {
			defer h.Enqueue("record", reconcile.Key{}) // as the real one is swept after a while
		}
		return c.Reconcile(ctx, key)
	}
	h.Add(kit.Room{Name: "record", Reconcile: func(ctx context.Context, _ reconcile.Key) (reconcile.Result, error) {
		return reconcile.Result{}, c.Sweep(ctx)
	}})
	h.Add(kit.Room{Name: "claim", Reconcile: work, Keys: kit.Feeds(kit.On(c.KeysOfClaim), kit.On(c.KeysOfVolume), kit.On(c.KeysOfClass), kit.On(c.KeysOfSnapshot), kit.On(c.KeysOfGrant))})
	return c
}

// world is a driver without topology and the class that claims name.
func world(t *testing.T, objects ...kube.Object) *kit.Harness {
	h := kit.New(t)
	h.Driver.Capabilities = can()
	h.Put(kit.Class(kit.ClassName))
	h.Put(objects...)
	return h
}

// want compares the effects so far with what they should be.
func want(t *testing.T, h *kit.Harness, lines ...string) {
	t.Helper()
	if d := cmp.Diff(lines, h.Log.Lines()); d != "" {
		t.Errorf("effects (-want +got):\n%s\nturns:\n%s", d, h.Trace())
	}
}

func requests(h *kit.Harness) (all []*csi.CreateVolumeRequest) {
	for _, call := range h.Driver.Calls("CreateVolume") {
		all = append(all, call.Request.(*csi.CreateVolumeRequest))
	}
	return all
}

const (
	created     = " → OK"
	provisioned = "event default/data: Normal ProvisioningSucceeded Successfully provisioned volume "
	failed      = "event default/data: Warning ProvisioningFailed "
)

// snapshotOf is a ready snapshot with its content, and the volume and snapshot at the driver.
func snapshotOf(h *kit.Harness, name string, mods ...func(*snapv1.VolumeSnapshot)) {
	source, err := h.Driver.CreateVolume(h.T.Context(), &csi.CreateVolumeRequest{Name: "source", VolumeCapabilities: []*csi.VolumeCapability{{}}})
	if err != nil {
		h.T.Fatal(err)
	}
	made, err := h.Driver.CreateSnapshot(h.T.Context(), &csi.CreateSnapshotRequest{Name: name, SourceVolumeId: source.VolumeId})
	if err != nil {
		h.T.Fatal(err)
	}
	snapshot := kit.Snapshot(name, "source", mods...)
	content := kit.Content(snapshot, source.VolumeId, kit.Taken(made.GetSnapshotId()))
	kit.BoundContent(content.Name)(snapshot)
	h.Put(snapshot, content)
}

// cloneSource is a bound claim "source" with its volume, also at the driver.
func cloneSource(h *kit.Harness) {
	made, err := h.Driver.CreateVolume(h.T.Context(), &csi.CreateVolumeRequest{Name: "source-pv", VolumeCapabilities: []*csi.VolumeCapability{{}}})
	if err != nil {
		h.T.Fatal(err)
	}
	source := kit.Claim("source", kit.BoundTo("source-pv"))
	h.Put(source, kit.Volume("source-pv", kit.ClaimedBy(source), func(v *corev1.PersistentVolume) { v.Spec.CSI.VolumeHandle = made.GetVolumeId() }))
}

var snapSource = provision.Source{Kind: "VolumeSnapshot", Namespace: kit.Namespace, Name: "snap"}

// scheduled is a claim on node n1 of two, of a class that waits for consumers.
func scheduled(t *testing.T) *kit.Harness {
	h := kit.New(t)
	schedule(h)
	return h
}

func schedule(h *kit.Harness) {
	h.Put(kit.Class(kit.ClassName, kit.WaitForConsumer), kit.Claim("data", kit.OnNode("n1")))
	h.Put(twoZones()...)
	h.Driver.Capabilities = withTopology()
}

// twoZones are two nodes, each in a zone of its own.
func twoZones() []kube.Object {
	return []kube.Object{
		kit.Node("n1", map[string]string{"zone": "a"}), kit.CSINode("n1", "zone"),
		kit.Node("n2", map[string]string{"zone": "b"}), kit.CSINode("n2", "zone"),
	}
}
