// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
)

const volumeFinalizer = "external-provisioner.volume.kubernetes.io/finalizer"

// TestClaimLife: a whole life with Immediate binding, with the whole PV compared (spec part 3.10).
func TestClaimLife(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{})
	class := w.class("golden", allowing("z2"), func(c *storagev1.StorageClass) {
		c.Parameters = map[string]string{"csi.storage.k8s.io/fstype": "ext4", "colour": "blue"}
		c.MountOptions = []string{"noatime"}
	})
	claim := w.claim("data", class)
	pv := w.bound("data")
	w.golden("volume", pv, map[string]string{string(claim.UID): "CLAIM", pv.Spec.CSI.VolumeHandle: "HANDLE"})
	w.told("data", "Normal ProvisioningSucceeded", "Successfully provisioned volume "+pv.Name)

	stored := w.inventory().Volumes
	if len(stored) != 1 || stored[0].ID != pv.Spec.CSI.VolumeHandle || stored[0].Name != pv.Name || stored[0].Segment[zoneKey] != "z2" {
		t.Errorf("the driver stores %+v", stored)
	}
	// Reserved keys are for us, all others are for the driver.
	if got := stored[0].Parameters; len(got) != 1 || got["colour"] != "blue" {
		t.Errorf("the driver got the parameters %v", got)
	}
	w.pod("app", "data", "")
	folder, pod := w.runs("app")
	if pod.Spec.NodeName != "worker-2" {
		t.Errorf("the pod runs on %s, where the volume is not", pod.Spec.NodeName)
	}
	w.mustNot(folder.Write("file", "content"))
	w.endPod("app")
	w.deleteClaim("data")
	w.claimGone("data")
	w.volumeGone(pv.Name)
	if calls := w.calls("DeleteVolume"); len(calls) != 1 {
		t.Errorf("DeleteVolume was called %d times", len(calls))
	}
}

// TestWaitForFirstConsumer: the scheduler chooses a node, and the volume is made there.
func TestWaitForFirstConsumer(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{})
	w.claim("data", w.class("late", waiting))
	w.told("data", "WaitForFirstConsumer")
	if calls := w.calls("CreateVolume"); len(calls) > 0 {
		t.Fatalf("CreateVolume was called before anybody wanted the volume: %s", calls[0].Request)
	}
	w.pod("app", "data", "worker-2")
	folder, _ := w.runs("app")
	w.mustNot(folder.Write("file", "content"))
	pv := w.bound("data")
	claim, err := w.readClaim("data")
	w.mustNot(err)
	if node := claim.Annotations["volume.kubernetes.io/selected-node"]; node != "worker-2" {
		t.Errorf("the selected node is %q", node)
	}
	checkZones(t, pv, "z2")
}

// checkZones compares the places of a PV.
func checkZones(t *testing.T, pv *corev1.PersistentVolume, want ...string) {
	t.Helper()
	var got []string
	if affinity := pv.Spec.NodeAffinity; affinity != nil && affinity.Required != nil {
		for _, term := range affinity.Required.NodeSelectorTerms {
			for _, e := range term.MatchExpressions {
				if e.Key != zoneKey {
					t.Errorf("the affinity names the key %s", e.Key)
				}
				got = append(got, e.Values...)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the volume is in %q, want %q", got, want)
	}
}

// TestRetain: a volume with policy Retain outlives its claim, and is deleted once its policy is changed.
func TestRetain(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{})
	w.claim("data", w.class("keep", retained))
	pv := w.bound("data")
	w.deleteClaim("data")
	w.claimGone("data")
	volumes := w.kube.CoreV1().PersistentVolumes()
	w.await("the volume is Released and without our finalizer", func() (bool, string) {
		got, err := volumes.Get(w.ctx, pv.Name, metav1.GetOptions{})
		if err != nil {
			return unreadable(err)
		}
		return got.Status.Phase == corev1.VolumeReleased && !slices.Contains(got.Finalizers, volumeFinalizer), text(got)
	})
	if calls := w.calls("DeleteVolume"); len(calls) > 0 {
		t.Errorf("DeleteVolume was called for a volume that is to be kept")
	}
	w.must(volumes.Patch(w.ctx, pv.Name, types.MergePatchType, []byte(`{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`), metav1.PatchOptions{}))
	w.volumeGone(pv.Name)
}

// TestDriverErrors: an error is told in an event, and provisioning succeeds when the driver does.
func TestDriverErrors(t *testing.T) {
	t.Parallel()
	for _, code := range []codes.Code{codes.Unavailable, codes.Internal, codes.FailedPrecondition} {
		t.Run(code.String(), func(t *testing.T) {
			t.Parallel()
			w := begin(t, setup{withoutSnapshotter: true})
			rule := w.rule(w.script.Fail(w.ctx, control.On("CreateVolume"), code))
			w.claim("data", w.class("class"))
			w.told("data", "Warning ProvisioningFailed", "code = "+code.String(), "scripted "+code.String())
			w.release(rule)
			pv := w.bound("data")
			rule = w.rule(w.script.Fail(w.ctx, control.On("DeleteVolume"), code))
			w.deleteClaim("data")
			w.told(pv.Name, "Warning VolumeFailedDelete", "scripted "+code.String())
			w.release(rule)
			w.volumeGone(pv.Name)
		})
	}
}

// TestWorkInFlightOutlivesItsClaim (T11): a call whose outcome is open is repeated although its claim is gone, since the
// volume that it may have made would otherwise be known to nobody.
func TestWorkInFlightOutlivesItsClaim(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{withoutSnapshotter: true, provisioner: []string{"--timeout=1s"}})
	rule := w.rule(w.script.CommitThenHang(w.ctx, control.On("CreateVolume"), 0))
	w.claim("data", w.class("class"))
	w.awaitCalls("CreateVolume", 1)
	w.deleteClaim("data")
	w.claimGone("data")
	w.release(rule)
	w.await("the volume is made and deleted", func() (bool, string) {
		return len(w.calls("DeleteVolume")) > 0 && len(w.inventory().Volumes) == 0, text(w.inventory())
	})
	w.repeats = 4
}

// TestSlowDriver: a driver that takes longer than the deadline is asked again with the same name, and makes one volume.
func TestSlowDriver(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{withoutSnapshotter: true, provisioner: []string{"--timeout=500ms"}})
	rule := w.rule(w.script.Lag(w.ctx, control.On("CreateVolume").Times(1), 2*time.Second))
	w.claim("data", w.class("class"))
	w.bound("data")
	w.release(rule)
	if stored := w.inventory().Volumes; len(stored) != 1 {
		t.Errorf("the driver stores %d volumes", len(stored))
	}
}
