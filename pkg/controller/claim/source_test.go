// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

const refusedSnapshot = failed + "error getting handle for DataSource Type VolumeSnapshot by Name snap: "

const (
	protect      = `patch volumesnapshots default/snap {"metadata":{"finalizers":["foreign","provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection"]}}`
	protectClaim = `patch persistentvolumeclaims default/source {"metadata":{"finalizers":["provisioner.storage.kubernetes.io/cloning-protection"]}}`
)

func restoring(t *testing.T) *kit.Harness {
	h := world(t, kit.Claim("data", kit.FromSnapshot("snap")))
	snapshotOf(h, "snap", func(s *snapv1.VolumeSnapshot) { s.Finalizers = []string{"foreign"} })
	return h
}

func TestRestore(t *testing.T) {
	const conflict = "patch volumesnapshots default/snap → Conflict"
	made := []string{"driver CreateVolume " + name + created, "create persistentvolumes " + name, provisioned + name}
	for _, c := range []struct {
		name string
		with func(*kit.Harness)
		want []string
	}{
		{"T35 protect, call, write", func(*kit.Harness) {}, append([]string{protect}, made...)},
		{"T41 the snapshot may not be patched", func(h *kit.Harness) { h.API.Deny("patch", "volumesnapshots") },
			append([]string{"patch volumesnapshots default/snap → Forbidden"}, made...)},
		{"T41 B061 a conflict is tried again and not told", func(h *kit.Harness) { h.API.Conflict("volumesnapshots", 2) },
			append([]string{conflict, conflict, protect}, made...)},
		{"T36 not there", func(h *kit.Harness) {
			kit.Edit(h.API, kube.Key{Namespace: kit.Namespace, Name: "snap"}, func(s *snapv1.VolumeSnapshot) { s.Finalizers = nil })
			kit.Remove[*snapv1.VolumeSnapshot](h.API, kube.Key{Namespace: kit.Namespace, Name: "snap"})
		}, []string{refusedSnapshot + `error getting snapshot snap from api server: volumesnapshots.snapshot.storage.k8s.io "snap" not found; see that VolumeSnapshot default/snap exists and may be read; the claim goes on by itself then`}},
		{"T39 terminating without our finalizer", func(h *kit.Harness) {
			kit.Remove[*snapv1.VolumeSnapshot](h.API, kube.Key{Namespace: kit.Namespace, Name: "snap"})
		}, []string{refusedSnapshot + "snapshot snap is being deleted; delete this claim and make one that is restored from another snapshot"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := restoring(t)
			c.with(h)
			start(h)
			h.Settle()
			want(t, h, c.want...)
			if snapshot, ok := kit.Read[*snapv1.VolumeSnapshot](h.API, kube.Key{Namespace: kit.Namespace, Name: "snap"}); ok && !kube.HasFinalizer(snapshot, "foreign") {
				t.Error("T35: a foreign finalizer is lost")
			}
		})
	}
}

func TestRestoreSurvivesItsSource(t *testing.T) {
	h := restoring(t)
	h.Play(kit.Binder(h.API))
	h.Driver.Next("CreateVolume", kit.Reply{Code: codes.DeadlineExceeded, Text: "slow", Done: true, Times: 2, Meanwhile: func() {
		kit.Remove[*corev1.PersistentVolumeClaim](h.API, dataKey)
		kit.Remove[*snapv1.VolumeSnapshot](h.API, kube.Key{Namespace: kit.Namespace, Name: "snap"})
	}})
	c := start(h)
	var freed []provision.Source
	c.SourceFreed = func(source provision.Source) { freed = append(freed, source) }
	h.Settle()
	if got := requests(h); len(got) != 4 || got[1].GetVolumeContentSource().GetSnapshot() == nil || got[3].GetVolumeContentSource().GetSnapshot() == nil {
		t.Errorf("B005: %v", got)
	}
	if c.IsInUse(snapSource) || len(freed) != 1 || freed[0] != snapSource {
		t.Error("B005: nothing is in use any more, and nobody was told:", freed)
	}
}

func TestWrongVolumes(t *testing.T) {
	bare := kit.Reply{Volume: func(v *csi.Volume) *csi.Volume { v.ContentSource = nil; return v }}
	made := []string{"driver CreateVolume " + name + created, "create persistentvolumes " + name, provisioned + name}
	t.Run("T42 without its source it is removed and made again", func(t *testing.T) {
		h := restoring(t)
		h.Driver.Next("CreateVolume", bare)
		start(h)
		h.Settle()
		want(t, h, append([]string{protect, "driver CreateVolume " + name + created,
			"driver DeleteVolume " + kit.VolumeHandle(name) + created, failed + "volume content source missing"}, made...)...)
	})
	t.Run("T53 too small", func(t *testing.T) {
		h := world(t, kit.Claim("data"))
		h.Driver.Next("CreateVolume", kit.Reply{Volume: func(v *csi.Volume) *csi.Volume { v.CapacityBytes = 5; return v }})
		start(h)
		h.Settle()
		want(t, h, append([]string{"driver CreateVolume " + name + created, "driver DeleteVolume " + kit.VolumeHandle(name) + created,
			failed + "created volume capacity 5 less than requested capacity 1073741824"}, made...)...)
	})
	t.Run("T54 five tries, then orphaned, then removed, then asked for anew", func(t *testing.T) {
		h := restoring(t)
		h.Driver.Next("CreateVolume", bare)
		h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.Internal, Text: "no", Times: 5})
		start(h)
		h.Settle()
		try := "driver DeleteVolume " + kit.VolumeHandle(name) + " → Internal"
		want(t, h, append([]string{protect, "driver CreateVolume " + name + created, try, try, try, try, try,
			failed + "volume content source missing. cleanup of volume " + name + " failed, volume is orphaned: rpc error: code = Internal desc = no",
			"driver DeleteVolume " + kit.VolumeHandle(name) + created, failed + "volume content source missing"}, made...)...)
	})
	t.Run("B001 a volume that a PersistentVolume holds is never removed", func(t *testing.T) {
		h := restoring(t)
		h.Driver.Next("CreateVolume", kit.Reply{Volume: bare.Volume, Times: 99})
		// The cache does not know the holder yet.
		h.Stores.Hold()
		holder := kit.Volume("by-hand", func(v *corev1.PersistentVolume) { v.Spec.CSI.VolumeHandle = kit.VolumeHandle(name) })
		h.Put(holder)
		start(h)
		h.Horizon = 0
		h.Settle()
		want(t, h, protect, "driver CreateVolume "+name+created,
			failed+"volume content source missing; volume "+kit.VolumeHandle(name)+" is kept, because PersistentVolume by-hand holds it")
	})
	t.Run("B001 nor is the claim's own, written by a process before", func(t *testing.T) {
		h := restoring(t)
		h.Driver.Next("CreateVolume", kit.Reply{Volume: bare.Volume, Times: 99})
		h.Stores.Hold()
		claim, _ := kit.Read[*corev1.PersistentVolumeClaim](h.API, dataKey)
		h.Put(kit.Volume(name, kit.ClaimedBy(claim)))
		start(h)
		h.Settle()
		want(t, h, protect, "driver CreateVolume "+name+created,
			failed+"volume content source missing; volume "+kit.VolumeHandle(name)+" is kept, because PersistentVolume "+name+" holds it")
		if errs := h.Errors(); len(errs) != 0 {
			t.Error(errs)
		}
	})
	t.Run("unknown is not no: the holder cannot be looked for", func(t *testing.T) {
		h := restoring(t)
		h.Driver.Next("CreateVolume", bare)
		release := h.API.Deny("list", "persistentvolumes")
		start(h)
		h.Horizon = 0
		h.Settle()
		if calls := h.Driver.Calls("DeleteVolume"); len(calls) != 0 {
			t.Error(calls)
		}
		release()
	})
}

func TestClone(t *testing.T) {
	h := world(t, kit.Claim("data", kit.FromClaim("source")))
	cloneSource(h)
	start(h)
	h.Settle()
	want(t, h, protectClaim, "driver CreateVolume "+name+created, "create persistentvolumes "+name, provisioned+name)
	source, _ := kit.Read[*corev1.PersistentVolumeClaim](h.API, kube.Key{Namespace: kit.Namespace, Name: "source"})
	if !kube.HasFinalizer(source, wellknown.FinalizerCloneSource) {
		t.Error("T44: the source is not protected")
	}
	if got := requests(h)[1].GetVolumeContentSource().GetVolume().GetVolumeId(); got != kit.VolumeHandle("source-pv") {
		t.Errorf("T44: made from %q", got)
	}
}

// What is on its way is waited for without alarm, and taken up as soon as it is there.
func TestSourcesOnTheirWay(t *testing.T) {
	const late = 7 * time.Minute
	t.Run("T36 a snapshot that gets ready", func(t *testing.T) {
		h := restoring(t)
		snap := kube.Key{Namespace: kit.Namespace, Name: "snap"}
		kit.Edit(h.API, snap, func(s *snapv1.VolumeSnapshot) { s.Status.ReadyToUse = kit.Ptr(false) })
		start(h)
		h.Horizon = late
		h.Settle()
		kit.Edit(h.API, snap, func(s *snapv1.VolumeSnapshot) { s.Status.ReadyToUse = kit.Ptr(true) })
		came := h.Clock.Now()
		h.Horizon = 0
		h.Settle()
		want(t, h, "event default/data: Normal ProvisioningFailed error getting handle for DataSource Type VolumeSnapshot by Name snap: snapshot snap is not Ready; the claim goes on by itself when VolumeSnapshot snap is ready",
			protect, "driver CreateVolume "+name+created, "create persistentvolumes "+name, provisioned+name)
		if !h.Clock.Now().Equal(came) {
			t.Error("it was not woken")
		}
	})
	t.Run("T45 a source claim that gets bound", func(t *testing.T) {
		h := world(t, kit.Claim("data", kit.FromClaim("source")))
		cloneSource(h)
		source := kube.Key{Namespace: kit.Namespace, Name: "source"}
		kit.Edit(h.API, source, func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending })
		start(h)
		h.Horizon = late
		h.Settle()
		kit.Edit(h.API, source, func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimBound })
		h.Horizon = 0
		h.Settle()
		want(t, h, "event default/data: Normal ProvisioningFailed error getting handle for DataSource Type PersistentVolumeClaim by Name source: the PVC DataSource source must have a status of Bound.  Got Pending; the claim goes on by itself when its source is bound",
			protectClaim, "driver CreateVolume "+name+created, "create persistentvolumes "+name, provisioned+name)
	})
}
