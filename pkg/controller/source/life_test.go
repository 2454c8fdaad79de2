// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/controller/source"
	"github.com/csi-tandem/csi-tandem/pkg/controller/volume"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

var dataKey = kube.Key{Namespace: kit.Namespace, Name: "data"}

// provisioner is the whole program: all three rooms, joined as it joins them.
func provisioner(h *kit.Harness) {
	var claims *claim.Controller
	freed := func(s provision.Source) {
		room := "claims"
		if s.Kind == "VolumeSnapshot" {
			room = "snapshots"
		}
		h.Enqueue(room, keyOf(s))
	}
	claims = claim.New(*claim.NewOptions(), claim.Deps{
		Client: h.API, Driver: h.Driver, DriverName: kit.DriverName, Identity: "id", Capabilities: h.Driver.Capabilities,
		Recorder: h.Recorder, Clock: h.Clock, Topology: h.Topology, SourceFreed: freed,
		Claims: h.Stores.Claims, Volumes: h.Stores.Volumes, Classes: h.Stores.StorageClasses,
		RetryStart: h.RetryStart, RetryMax: h.RetryMax,
	})
	volumes := volume.New(volume.Deps{
		Client: h.API, Driver: h.Driver, DriverName: kit.DriverName, Capabilities: h.Driver.Capabilities,
		Recorder: h.Recorder, Clock: h.Clock,
		Volumes: h.Stores.Volumes, Classes: h.Stores.StorageClasses, Attachments: h.Stores.Attachments, Claims: h.Stores.Claims,
		RetryStart: h.RetryStart, RetryMax: h.RetryMax,
	})
	start(h, source.NewOptions(), claims.IsInUse)
	h.Add(
		kit.Room{Name: "claim", Reconcile: claims.Reconcile, Keys: kit.Feeds(kit.On(claims.KeysOfClaim), kit.On(claims.KeysOfClass))},
		kit.Room{Name: "volume", Reconcile: volumes.Reconcile, Keys: kit.Feeds(kit.On(volumes.KeysOfVolume), kit.On(volumes.KeysOfAttachment))},
	)
}

// seed puts a volume of the claim "source" and its snapshot "snap" into the driver.
func seed(h *kit.Harness) {
	plugins := []capability.Plugin{csi.PluginCapability_Service_CONTROLLER_SERVICE}
	h.Driver.Capabilities = capability.Of(plugins, csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT, csi.ControllerServiceCapability_RPC_CLONE_VOLUME)
	h.Put(kit.Class(kit.ClassName))
	h.Play(kit.Binder(h.API))
	made, err := h.Driver.CreateVolume(h.T.Context(), &csi.CreateVolumeRequest{Name: "source-pv", VolumeCapabilities: []*csi.VolumeCapability{{}}})
	if err != nil {
		h.T.Fatal(err)
	}
	taken, err := h.Driver.CreateSnapshot(h.T.Context(), &csi.CreateSnapshotRequest{Name: "snap", SourceVolumeId: made.VolumeId})
	if err != nil {
		h.T.Fatal(err)
	}
	owner := kit.Claim("source", kit.BoundTo("source-pv"))
	snapshot := kit.Snapshot("snap", "source")
	content := kit.Content(snapshot, made.VolumeId, kit.Taken(taken.SnapshotId))
	kit.BoundContent(content.Name)(snapshot)
	h.Put(owner, kit.Volume("source-pv", kit.ClaimedBy(owner), func(v *corev1.PersistentVolume) { v.Spec.CSI.VolumeHandle = made.VolumeId }), snapshot, content)
}

func claimIs(t testing.TB, h *kit.Harness, phase corev1.PersistentVolumeClaimPhase, inventory int) {
	t.Helper()
	data, _ := kit.Read[*corev1.PersistentVolumeClaim](h.API, dataKey)
	if data == nil || data.Status.Phase != phase || len(h.Driver.Inventory()) != inventory {
		t.Errorf("claim %v, driver %q\n%s", data, h.Driver.Inventory(), h.Trace())
	}
}

func removeData(h *kit.Harness) { kit.Remove[*corev1.PersistentVolumeClaim](h.API, dataKey) }

// Wherever the process ends, and whichever answer is lost, a claim gets exactly one volume, and a deleted
// claim leaves none.
func TestCrash(t *testing.T) {
	for name, mod := range map[string]func(*corev1.PersistentVolumeClaim){
		"provision": func(*corev1.PersistentVolumeClaim) {}, "restore": kit.FromSnapshot("snap"), "clone": kit.FromClaim("source"),
	} {
		for _, lag := range []int{0, 4} {
			world := func(h *kit.Harness) {
				seed(h)
				h.Put(kit.Claim("data", mod))
				h.Driver.Next("CreateVolume", kit.Reply{Code: codes.Unavailable, Text: "not yet"})
			}
			t.Run(name, func(t *testing.T) {
				kit.Crash(t, kit.Scenario{World: world, Program: provisioner, Lag: lag, Check: func(t testing.TB, h *kit.Harness) {
					claimIs(t, h, corev1.ClaimBound, 3)
					if snapshot, ok := kit.Read[*snapv1.VolumeSnapshot](h.API, snapKey); !ok || len(snapshot.Finalizers) != 0 {
						t.Errorf("the snapshot has %v", snapshot)
					}
				}})
			})
			t.Run(name+" and delete", func(t *testing.T) {
				kit.Crash(t, kit.Scenario{World: world, Program: provisioner, Lag: lag, Users: []func(*kit.Harness){removeData}, Check: func(t testing.TB, h *kit.Harness) {
					if got := len(h.Driver.Inventory()); got != 2 || len(kit.All[*corev1.PersistentVolume](h.API)) != 1 {
						t.Errorf("left behind: %q", h.Driver.Inventory())
					}
				}})
			})
		}
	}
}

// The source of a clone is deleted while the clone is made: it goes after the clone, and not before.
func TestCrashWithTheSourceGoing(t *testing.T) {
	kit.Crash(t, kit.Scenario{
		World: func(h *kit.Harness) {
			seed(h)
			h.Put(kit.Claim("data", kit.FromClaim("source")))
			h.Driver.Next("CreateVolume", kit.Reply{Code: codes.DeadlineExceeded, Text: "slow", Done: true, Meanwhile: func() {
				kit.Remove[*corev1.PersistentVolumeClaim](h.API, sourceKey)
			}})
		},
		Program: provisioner,
		Users:   []func(*kit.Harness){func(h *kit.Harness) { kit.Remove[*corev1.PersistentVolumeClaim](h.API, sourceKey) }},
		Check: func(t testing.TB, h *kit.Harness) {
			if got := h.Driver.Inventory(); len(got) != 2 {
				t.Errorf("B031: driver %q\n%s", got, h.Trace())
			}
		},
	})
}

// A handle is never given to DeleteVolume while its claim lives (the cases' assertion A6), and each
// successful deletion is asked for once.
func TestDeletionsOfTheWholeLife(t *testing.T) {
	h := kit.New(t)
	seed(h)
	h.Put(kit.Claim("data", kit.FromSnapshot("snap")))
	provisioner(h)
	h.Settle()
	if calls := h.Driver.Calls("DeleteVolume"); len(calls) != 0 {
		t.Error("A6", calls)
	}
	removeData(h)
	h.Settle()
	if calls := h.Driver.Calls("DeleteVolume"); len(calls) != 1 {
		t.Error("B015", calls)
	}
	if d := cmp.Diff([]string{"snapshot snap of handle-of-source-pv", "volume source-pv"}, h.Driver.Inventory()); d != "" {
		t.Error("A1", d)
	}
}

func keyOf(s provision.Source) reconcile.Key {
	return reconcile.Key{Namespace: s.Namespace, Name: s.Name}
}
