// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
)

// TestSwitchBackToTheIncumbents: what ours has made, and what it leaves in the middle of when it is killed, is what the incumbents
// make and leave: each annotation, finalizer and field that they go by is compared with what is written out here. Then ours comes
// back and finishes. Catches a name, a mark or a protection of our own where theirs is needed.
func TestSwitchBackToTheIncumbents(t *testing.T) {
	v := beginVendor(t, "switch-back")
	v.start()
	claim := v.claim("data", v.class)
	pv := v.bound("data")
	v.sameVolume(pv, claim)
	snapshot := v.snapshot("snap", "data", v.snapshotClass)
	snapshot, content := v.ready("snap")
	v.sameSnapshot(snapshot)
	v.sameContent(content, snapshot, pv)
	v.await("the claim is let go", func() (bool, string) {
		claim, err := v.readClaim("data")
		v.mustNot(err)
		return slices.Equal(claim.Finalizers, []string{"kubernetes.io/pvc-protection"}), text(claim.Finalizers)
	})
	v.sameLeases()

	// In the middle of everything, each call hanging at the driver.
	var rules []string
	for _, method := range []string{"CreateVolume", "CreateSnapshot", "DeleteSnapshot", "DeleteVolume"} {
		rules = append(rules, v.rule(v.script.Hang(v.world.ctx, control.On(method), 0)))
	}
	v.claim("half", v.class)
	cutting := v.snapshot("cutting", "data", v.snapshotClass)
	v.deleteSnapshot("snap")
	for method, count := range map[string]int{"CreateVolume": 2, "CreateSnapshot": 2, "DeleteSnapshot": 1} {
		v.awaitCalls(method, count)
	}
	v.sameBegun(cutting)
	v.stop()
	v.sameHalf()
	v.sameLeaving(content.Name)
	for _, rule := range rules {
		v.release(rule)
	}

	v.start()
	v.bound("half")
	v.ready("cutting")
	v.snapshotGone("snap")
	v.contentGone(content.Name)
	v.checkSecrets("CreateVolume", "CreateSnapshot", "DeleteSnapshot")
	v.repeats = 3
}

// same compares a value with what is written out.
func (v *vendor) same(what string, got, want any) {
	v.past.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		v.past.Errorf("%s is not as the incumbents make it (-want +got):\n%s", what, diff)
	}
}

func (v *vendor) sameVolume(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
	v.past.Helper()
	v.same("name", pv.Name, "pvc-"+string(claim.UID))
	v.same("annotations of the volume", pv.Annotations, map[string]string{
		"pv.kubernetes.io/provisioned-by":                            v.driver,
		"volume.kubernetes.io/provisioner-deletion-secret-name":      "credentials",
		"volume.kubernetes.io/provisioner-deletion-secret-namespace": v.ns,
	})
	v.same("finalizers of the volume", slices.Sorted(slices.Values(pv.Finalizers)), []string{"external-provisioner.volume.kubernetes.io/finalizer", "kubernetes.io/pv-protection"})
	ref := *pv.Spec.ClaimRef
	ref.ResourceVersion = ""
	v.same("claimRef", ref, corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: v.ns, Name: "data", UID: claim.UID})
	v.same("labels of the volume", len(pv.Labels), 0)
	identity := pv.Spec.CSI.VolumeAttributes["storage.kubernetes.io/csiProvisionerIdentity"]
	// Milliseconds, a number of four digits at most, the driver.
	parts := strings.SplitN(identity, "-", 3)
	if len(parts) != 3 || len(parts[0]) != 13 || len(parts[1]) > 4 || parts[2] != v.driver {
		v.past.Errorf("the identity is %q", identity)
	}
	v.same("file system", pv.Spec.CSI.FSType, "ext4")
	v.same("class", pv.Spec.StorageClassName, v.class)
	v.same("policy", pv.Spec.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
}

func (v *vendor) sameSnapshot(s *snapv1.VolumeSnapshot) {
	v.past.Helper()
	v.same("finalizers of the snapshot", s.Finalizers, []string{
		"snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection",
		"snapshot.storage.kubernetes.io/volumesnapshot-bound-protection",
	})
	v.same("annotations of the snapshot", len(s.Annotations), 0)
	v.same("content of the snapshot", ptr.Deref(s.Status.BoundVolumeSnapshotContentName, ""), "snapcontent-"+string(s.UID))
	if s.Status.CreationTime == nil || s.Status.RestoreSize == nil || s.Status.Error != nil {
		v.past.Errorf("the status of the snapshot is %s", text(s.Status))
	}
}

// own are annotations that mean nothing to the incumbents.
func own(key string) bool { return strings.HasPrefix(key, "csi-tandem.io/") }

func (v *vendor) sameContent(c *snapv1.VolumeSnapshotContent, s *snapv1.VolumeSnapshot, pv *corev1.PersistentVolume) {
	v.past.Helper()
	annotations := maps.Clone(c.Annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool { return own(key) })
	v.same("annotations of the content", annotations, map[string]string{
		"snapshot.storage.kubernetes.io/deletion-secret-name":      "credentials",
		"snapshot.storage.kubernetes.io/deletion-secret-namespace": v.ns,
	})
	v.same("finalizers of the content", c.Finalizers, []string{"snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"})
	v.same("labels of the content", len(c.Labels), 0)
	spec := c.Spec.DeepCopy()
	spec.VolumeSnapshotRef.ResourceVersion = ""
	v.same("spec of the content", *spec, snapv1.VolumeSnapshotContentSpec{
		VolumeSnapshotRef: corev1.ObjectReference{Kind: "VolumeSnapshot", APIVersion: "snapshot.storage.k8s.io/v1", Namespace: v.ns, Name: "snap", UID: s.UID},
		DeletionPolicy:    snapv1.VolumeSnapshotContentDelete, Driver: v.driver, VolumeSnapshotClassName: ptr.To(v.snapshotClass),
		Source:           snapv1.VolumeSnapshotContentSource{VolumeHandle: ptr.To(pv.Spec.CSI.VolumeHandle)},
		SourceVolumeMode: ptr.To(corev1.PersistentVolumeFilesystem),
	})
	if c.Status == nil || ptr.Deref(c.Status.SnapshotHandle, "") == "" || !ptr.Deref(c.Status.ReadyToUse, false) || ptr.Deref(c.Status.CreationTime, 0) == 0 {
		v.past.Errorf("the status of the content is %s", text(c.Status))
	}
}

// sameLeases: old and new stand for the same leases, so that they never lead at once.
func (v *vendor) sameLeases() {
	v.past.Helper()
	sanitized := strings.ReplaceAll(v.driver, ".", "-")
	v.await("the leases are held", func() (bool, string) {
		leases, err := v.kube.CoordinationV1().Leases(v.namespace).List(v.world.ctx, metav1.ListOptions{})
		if err != nil {
			return unreadable(err)
		}
		var held []string
		for _, l := range leases.Items {
			if ptr.Deref(l.Spec.HolderIdentity, "") != "" {
				held = append(held, l.Name)
			}
		}
		slices.Sort(held)
		// The half that stands back has a lease of its own, which no incumbent knows.
		held = slices.DeleteFunc(held, func(name string) bool { return name == "snapshot-controller-leader-"+sanitized })
		want := []string{"external-snapshotter-leader-" + sanitized, sanitized, "snapshot-controller-leader"}
		slices.Sort(want)
		return slices.Equal(held, want), text(held)
	})
}

// sameBegun: a snapshot in the middle of CreateSnapshot. csi-snapshotter goes on where there is the mark and no handle, and
// snapshot-controller protects what has its finalizer.
func (v *vendor) sameBegun(s *snapv1.VolumeSnapshot) {
	v.past.Helper()
	v.await("the snapshot has the name of its content", func() (bool, string) {
		now, err := v.readSnapshot(s.Name)
		v.mustNot(err)
		return now.Status != nil && ptr.Deref(now.Status.BoundVolumeSnapshotContentName, "") == "snapcontent-"+string(s.UID), text(now.Status)
	})
	c, err := v.readContent("snapcontent-" + string(s.UID))
	v.mustNot(err)
	v.same("the mark", c.Annotations["snapshot.storage.kubernetes.io/volumesnapshot-being-created"], "yes")
	v.same("finalizers of a content that is begun", c.Finalizers, []string{"snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"})
	if c.Status != nil && c.Status.SnapshotHandle != nil {
		v.past.Errorf("a content that is begun has a handle: %s", text(c.Status))
	}
	claim, err := v.readClaim("data")
	v.mustNot(err)
	v.same("finalizers of the claim that is cut", claim.Finalizers, []string{"kubernetes.io/pvc-protection", "snapshot.storage.kubernetes.io/pvc-as-source-protection"})
}

// sameHalf: a claim in the middle of CreateVolume has nothing of ours on it.
func (v *vendor) sameHalf() {
	v.past.Helper()
	claim, err := v.readClaim("half")
	v.mustNot(err)
	v.same("annotations of the claim", claim.Annotations, map[string]string{
		"volume.beta.kubernetes.io/storage-provisioner": v.driver, "volume.kubernetes.io/storage-provisioner": v.driver,
	})
	v.same("finalizers of the claim", claim.Finalizers, []string{"kubernetes.io/pvc-protection"})
}

// sameLeaving: a snapshot in the middle of DeleteSnapshot. snapshot-controller marks a content that is being deleted while its
// VolumeSnapshot is too and still has one of the two finalizers, and csi-snapshotter acts on the mark.
func (v *vendor) sameLeaving(content string) {
	v.past.Helper()
	s, err := v.readSnapshot("snap")
	v.mustNot(err)
	c, err := v.readContent(content)
	v.mustNot(err)
	if s.DeletionTimestamp == nil || c.DeletionTimestamp == nil {
		v.past.Errorf("the snapshot goes at %v, the content at %v", s.DeletionTimestamp, c.DeletionTimestamp)
	}
	if !slices.Contains(s.Finalizers, "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection") {
		v.past.Errorf("the snapshot is held by %q", s.Finalizers)
	}
	v.same("finalizers of a content that goes", c.Finalizers, []string{"snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"})
	if ptr.Deref(c.Status.SnapshotHandle, "") == "" {
		v.past.Errorf("the handle is gone before the driver has answered: %s", text(c.Status))
	}
}

// TestSwitchChangesImagesAndRights: between the two kustomizations of the example there are three images and some rights, and nothing
// else. Catches a switch that needs a flag.
func TestSwitchChangesImagesAndRights(t *testing.T) {
	theStage(t)
	built := buildOverlays(t, map[string]overlay{"old": {base: "examples/vendor/incumbents"}, "new": {base: "examples/vendor/tandem"}})
	images := map[string]string{
		"registry.k8s.io/sig-storage/csi-provisioner:v6.3.0":     "registry.example.com/csi-tandem/provisioner:v0.1.0",
		"registry.k8s.io/sig-storage/csi-snapshotter:v8.6.0":     "registry.example.com/csi-tandem/snapshotter:v0.1.0",
		"registry.k8s.io/sig-storage/snapshot-controller:v8.6.0": "registry.example.com/csi-tandem/snapshot-controller:v0.1.0",
	}
	switched := string(built["old"])
	for from, to := range images {
		if strings.Count(switched, from) != 1 {
			t.Errorf("%s is in the deployment %d times", from, strings.Count(switched, from))
		}
		switched = strings.ReplaceAll(switched, from, to)
	}
	before, after := byName(t, []byte(switched)), byName(t, built["new"])
	for name, object := range before {
		if diff := cmp.Diff(object, after[name]); diff != "" {
			t.Errorf("%s is changed by more than its image (-old +new):\n%s", name, diff)
		}
		delete(after, name)
	}
	for name := range after {
		if kind, _, _ := strings.Cut(name, "/"); !slices.Contains([]string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}, kind) {
			t.Errorf("%s is new", name)
		}
	}
	if len(after) == 0 {
		t.Error("no right is new")
	}
}

// byName are the objects of a manifest as JSON.
func byName(t *testing.T, manifest []byte) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, object := range decoded(t, manifest) {
		meta, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			t.Fatal(err)
		}
		content, err := json.Marshal(meta)
		if err != nil {
			t.Fatal(err)
		}
		name, _ := meta["metadata"].(map[string]any)["name"].(string)
		namespace, _ := meta["metadata"].(map[string]any)["namespace"].(string)
		all[object.GetObjectKind().GroupVersionKind().Kind+"/"+namespace+"/"+name] = string(content)
	}
	return all
}
