// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
)

const selectedNode = "volume.kubernetes.io/selected-node"

// static is a PV that somebody writes by hand for a claim, with policy Delete.
func (w *world) static(name, driver, handle, claim string) *corev1.PersistentVolume {
	w.Helper()
	pv := &corev1.PersistentVolume{
		ObjectMeta: w.cluster(name),
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			ClaimRef:               &corev1.ObjectReference{Namespace: w.ns, Name: claim},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle}},
		},
	}
	made, err := w.kube.CoreV1().PersistentVolumes().Create(w.ctx, pv, metav1.CreateOptions{})
	w.mustNot(err)
	return made
}

// TestStaticVolumes (T71, PW-24): a volume that was given by hand is protected while it is bound and deleted when it is released,
// as users of the reclaim policy expect. One of another driver is not touched. Catches one that manages only what it made.
func TestStaticVolumes(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{withoutSnapshotter: true, withoutTopology: true})
	// A volume that the driver has, and that no PV names: the one that is made for a claim which keeps it.
	w.claim("first", w.class("keep", retained))
	first := w.bound("first")
	handle := first.Spec.CSI.VolumeHandle
	w.deleteClaim("first")
	w.claimGone("first")
	w.mustNot(w.kube.CoreV1().PersistentVolumes().Delete(w.ctx, first.Name, metav1.DeleteOptions{}))
	w.volumeGone(first.Name)

	ours := w.static("ours", w.driver, handle, "ours")
	theirs := w.static("theirs", "other."+w.driver, "h", "theirs")
	for _, name := range []string{"ours", "theirs"} {
		w.claim(name, "", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = w.ns + "-" + name })
		w.bound(name)
	}
	volumes := w.kube.CoreV1().PersistentVolumes()
	w.await("the volume is protected", func() (bool, string) {
		pv, err := volumes.Get(w.ctx, ours.Name, metav1.GetOptions{})
		if err != nil {
			return unreadable(err)
		}
		return slices.Contains(pv.Finalizers, volumeFinalizer), text(pv.Finalizers)
	})
	w.deleteClaim("theirs")
	w.deleteClaim("ours")
	w.volumeGone(ours.Name)
	if calls := w.calls("DeleteVolume"); len(calls) != 1 {
		t.Errorf("DeleteVolume was called %d times", len(calls))
	}
	pv, err := volumes.Get(w.ctx, theirs.Name, metav1.GetOptions{})
	w.mustNot(err)
	if slices.Contains(pv.Finalizers, volumeFinalizer) || pv.DeletionTimestamp != nil {
		t.Errorf("the volume of another driver was touched: %s", text(pv))
	}
	w.mustNot(volumes.Delete(w.ctx, theirs.Name, metav1.DeleteOptions{}))
}

// TestAttributesClass (T26, T27): what the class says goes to the driver, beside what the storage class says.
func TestAttributesClass(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{withoutSnapshotter: true, provisioner: []string{"--retry-interval-start=200ms"}})
	class := w.class("class", parameters(map[string]string{"tier": "of the class"}))
	named := func(name string) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = ptr.To(w.ns + "-" + name) }
	}
	attributes := func(name, driver string) {
		w.must(w.kube.StorageV1().VolumeAttributesClasses().Create(w.ctx, &storagev1.VolumeAttributesClass{
			ObjectMeta: w.cluster(name), DriverName: driver, Parameters: map[string]string{"tier": "gold", "iops": "100"},
		}, metav1.CreateOptions{}))
		w.Cleanup(func() {
			if err := w.kube.StorageV1().VolumeAttributesClasses().Delete(w.ctx, w.ns+"-"+name, metav1.DeleteOptions{}); err != nil {
				w.Error(err)
			}
		})
	}
	attributes("foreign", "other."+w.driver)
	w.claim("foreign", class, named("foreign"))
	w.told("foreign", "Warning ProvisioningFailed", "VAC "+w.ns+"-foreign referenced in PVC is for driver other."+w.driver+" which does not match driver name "+w.driver)
	w.claim("data", class, named("gold"))
	w.told("data", "Warning ProvisioningFailed", `"`+w.ns+`-gold" not found`)
	attributes("gold", w.driver)
	pv := w.bound("data")
	if ptr.Deref(pv.Spec.VolumeAttributesClassName, "") != w.ns+"-gold" {
		t.Errorf("the volume says %s", text(pv.Spec))
	}
	type brought struct {
		Parameters map[string]string `json:"parameters"`
		Mutable    map[string]string `json:"mutable_parameters"`
	}
	calls := w.calls("CreateVolume")
	got := request[brought](w, calls[len(calls)-1])
	if len(calls) != 1 || got.Parameters["tier"] != "of the class" || got.Mutable["tier"] != "gold" || got.Mutable["iops"] != "100" {
		t.Errorf("%d calls, the last with %s", len(calls), text(got))
	}
	w.deleteClaim("foreign")
}

// TestFullNode (T60): no room on the node that was selected, so the scheduler chooses again, and only then the driver is asked
// again.
func TestFullNode(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{withoutSnapshotter: true, provisioner: []string{"--strict-topology"}})
	w.rule(w.script.Fail(w.ctx, control.On("CreateVolume").Times(2), codes.ResourceExhausted))
	w.claim("data", w.class("late", waiting))
	w.pod("app", "data", "")
	w.told("data", "Warning ProvisioningFailed", "code = ResourceExhausted")
	_, pod := w.runs("app")
	pv := w.bound("data")
	claim, err := w.readClaim("data")
	w.mustNot(err)
	if claim.Annotations[selectedNode] != pod.Spec.NodeName {
		t.Errorf("the selected node is %q, and the pod runs on %s", claim.Annotations[selectedNode], pod.Spec.NodeName)
	}
	checkZones(t, pv, zones[pod.Spec.NodeName])
	if calls := w.calls("CreateVolume"); len(calls) != 3 {
		t.Errorf("CreateVolume was called %d times", len(calls))
	}
}

// TestGoneNode (T84, PW-21): a node that is not there any more, or never was, is given back to the scheduler.
func TestGoneNode(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{withoutSnapshotter: true})
	w.claim("data", w.class("late", waiting), func(c *corev1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{selectedNode: "gone"}
	})
	w.told("data", "ProvisioningFailed", "gone")
	w.await("the node is given back", func() (bool, string) {
		claim, err := w.readClaim("data")
		if err != nil {
			return unreadable(err)
		}
		return claim.Annotations[selectedNode] == "", text(claim.Annotations)
	})
	if calls := w.calls("CreateVolume"); len(calls) > 0 {
		t.Errorf("CreateVolume was called for a node that is not there: %s", calls[0].Request)
	}
	w.pod("app", "data", "worker-2")
	w.runs("app")
	checkZones(t, w.bound("data"), "z2")
}
