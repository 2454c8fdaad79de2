// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/controller/content"
	"github.com/csi-tandem/csi-tandem/pkg/controller/source"
	"github.com/csi-tandem/csi-tandem/pkg/controller/volume"
	"github.com/csi-tandem/csi-tandem/pkg/controller/volumesnapshot"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// world has a driver without topology, and the part of Kubernetes that binds claims.
func world(t *testing.T) *kit.Harness {
	t.Helper()
	h := kit.New(t)
	h.Driver.Capabilities = capability.Of(
		[]capability.Plugin{csi.PluginCapability_Service_CONTROLLER_SERVICE}, csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT, csi.ControllerServiceCapability_RPC_GET_SNAPSHOT,
	)
	h.Play(kit.Binder(h.API))
	return h
}

func recording(holder string) *claim.Recording {
	return &claim.Recording{Namespace: "home", Name: "attempts", Holder: holder}
}

// provisioner puts the rooms of that program into a world, as after its start. What it returns does what is done a while after
// the work.
func provisioner(t *testing.T, h *kit.Harness, record *claim.Recording) (sweep func()) {
	t.Helper()
	claims := claim.New(*claim.NewOptions(), claim.Deps{
		Client: h.API, Driver: h.Driver, DriverName: kit.DriverName, Identity: "id", Capabilities: h.Driver.Capabilities, Recorder: h.Recorder,
		Clock: h.Clock, Topology: h.Topology, Claims: h.Stores.Claims, Volumes: h.Stores.Volumes, Classes: h.Stores.StorageClasses,
		RetryStart: h.RetryStart, RetryMax: h.RetryMax, Record: record,
	})
	open, err := claims.Begin(h.Ctx)
	if err != nil {
		t.Fatal(err)
	}
	volumes := volume.New(volume.Deps{
		Client: h.API, Driver: h.Driver, DriverName: kit.DriverName, Capabilities: h.Driver.Capabilities, Recorder: h.Recorder, Clock: h.Clock,
		Volumes: h.Stores.Volumes, Classes: h.Stores.StorageClasses, Claims: h.Stores.Claims, Attachments: h.Stores.Attachments,
		RetryStart: h.RetryStart, RetryMax: h.RetryMax, Settle: claims.Settle,
	})
	sources := source.New(*source.NewOptions(), source.Deps{
		Client: h.API, DriverName: kit.DriverName, Clock: h.Clock, Claims: h.Stores.Claims, Snapshots: h.Stores.Snapshots,
		IsInUse: claims.IsInUse, RetryStart: h.RetryStart, RetryMax: h.RetryMax,
	})
	h.Add(
		kit.Room{Name: "claim", Reconcile: claims.Reconcile, Keys: kit.Feeds(kit.On(claims.KeysOfClaim), kit.On(claims.KeysOfClass), kit.On(claims.KeysOfSnapshot))},
		kit.Room{Name: "volume", Reconcile: volumes.Reconcile, Keys: kit.On(volumes.KeysOfVolume)},
		kit.Room{Name: "source", Reconcile: sources.ReconcileSnapshot, Keys: kit.Feeds(kit.On(sources.SnapshotsOfClaim), kit.On(sources.SnapshotsOfSnapshot))},
	)
	for _, key := range open {
		h.Enqueue("claim", key)
	}
	return func() {
		if err := claims.Sweep(h.Ctx); err != nil {
			t.Error(err)
		}
	}
}

// snapshotter puts both halves of that program into a world.
func snapshotter(h *kit.Harness) {
	options := *volumesnapshot.NewOptions()
	options.Bind = volumesnapshot.Own
	binder := volumesnapshot.New(options, volumesnapshot.Deps{
		Client: h.API, Recorder: h.Recorder, Clock: h.Clock, DriverName: kit.DriverName,
		Snapshots: h.Stores.Snapshots, Contents: h.Stores.Contents, Classes: h.Stores.SnapshotClasses, Claims: h.Stores.Claims,
		Stance:  volumesnapshot.NewStance(volumesnapshot.Own, volumesnapshot.StanceDeps{Client: h.API, Clock: h.Clock, Recorder: h.Recorder, Holder: "me"}),
		Workers: 1, RetryStart: time.Second, RetryMax: 5 * time.Minute,
	})
	taker := content.New(*content.NewOptions(), content.Deps{
		Client: h.API, Driver: h.Driver, DriverName: kit.DriverName, Capabilities: h.Driver.Capabilities, Recorder: h.Recorder, Clock: h.Clock,
		Contents: h.Stores.Contents, Classes: h.Stores.SnapshotClasses, Snapshots: h.Stores.Snapshots,
		Workers: 1, RetryStart: time.Second, RetryMax: 5 * time.Minute,
	})
	h.Add(
		kit.Room{Name: "binding half", Reconcile: binder.Reconcile, Keys: kit.Feeds(kit.On(binder.OnSnapshot), kit.On(binder.OnContent), kit.On(binder.OnClass), kit.On(binder.OnClaim))},
		kit.Room{Name: "content half", Reconcile: taker.Reconcile, Keys: kit.Feeds(kit.On(taker.OnContent), kit.On(taker.OnClass), kit.On(taker.OnSnapshot))},
	)
	h.Settle()
}

func key(name string) kube.Key { return kube.Key{Namespace: kit.Namespace, Name: name} }

// disk is a bound claim with its volume, and a class of snapshots with a secret.
func disk(h *kit.Harness, policy snapv1.DeletionPolicy) {
	data := kit.Claim("data", kit.BoundTo("pv-data"))
	h.Put(data, kit.Volume("pv-data", kit.ClaimedBy(data)), kit.Secret("login", nil), kit.SnapshotClass(kit.SnapshotClassName, func(c *snapv1.VolumeSnapshotClass) {
		c.DeletionPolicy = policy
		c.Parameters = map[string]string{wellknown.ParamSnapshotterSecretName: "login", wellknown.ParamSnapshotterSecretNamespace: kit.Namespace}
	}))
	h.Driver.PutVolume("pv-data", 1<<30)
}
