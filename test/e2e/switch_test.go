// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/test/stage"
)

const (
	cloning   = "provisioner.storage.kubernetes.io/cloning-protection"
	restoring = "provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection"
)

// vendor is the driver of examples/vendor after the switch: our programs with the flags of the incumbents' containers, as their
// accounts, with their rights and those that the switch adds.
type vendor struct {
	*past
	*installation
	binder *stage.Process
}

// beginVendor builds both sides and applies what the switch leads to. Nothing of ours runs yet.
func beginVendor(t *testing.T, namespace string) *vendor {
	t.Helper()
	theStage(t)
	o := overlay{base: "examples/vendor/tandem", namespace: namespace, prefix: namespace + "-"}
	i := install(t, namespace, buildOverlays(t, map[string]overlay{"tandem": o})["tandem"])
	return &vendor{past: newPast(begin(t, setup{withoutSidecars: true, withoutTopology: true})), installation: i}
}

// start starts all three, again with the same logs.
func (v *vendor) start() {
	v.past.Helper()
	if v.provisioner == nil {
		var err error
		v.provisioner, err = v.cast.StartSidecar(stage.Provisioner, v.flags("csi-provisioner")...)
		v.mustNot(err)
		v.snapshotter, err = v.cast.StartSidecar(stage.Snapshotter, v.flags("csi-snapshotter")...)
		v.mustNot(err)
		v.binder = v.startController(v.world)
		return
	}
	for _, p := range []*stage.Process{v.provisioner, v.snapshotter, v.binder} {
		v.mustNot(p.Start())
	}
}

// stop ends all three as they are, in the middle of whatever they do.
func (v *vendor) stop() {
	v.past.Helper()
	for _, p := range []*stage.Process{v.provisioner, v.snapshotter, v.binder} {
		p.Kill()
	}
	// As if the time had passed that others wait for a leader who says nothing.
	v.mustNot(v.kube.CoordinationV1().Leases(v.namespace).DeleteCollection(v.world.ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
}

// TestSwitchFromTheIncumbents (S9.6): what csi-provisioner, csi-snapshotter and snapshot-controller leave in the middle of anything is
// taken over by ours, started as examples/vendor switches to them. Catches one that takes a mark without a process for work of
// another, that asks the driver for a second volume or snapshot, that rewrites what is settled, and that deletes without the secret.
func TestSwitchFromTheIncumbents(t *testing.T) {
	v := beginVendor(t, "switch-from")
	data := v.volume("data")
	// In the middle of CreateVolume: the driver has the volume, and nobody has stored it.
	half := v.claim("half", v.class)
	handle := v.ask(half)
	// Settled.
	done := v.snap("done", "data", isReady(), asSource, boundTo)
	settled := v.of(done, data, v.cut(done, data))
	// The finalizers are there, and nothing else.
	v.snap("begun", "data", nil, asSource)
	// In the middle of CreateSnapshot: the mark is set, the driver has it, the handle is nowhere.
	cutting := v.snap("cutting", "data", isBegun(), asSource)
	v.of(cutting, data, "", beingCreated)
	v.cut(cutting, data)
	v.protect("data", claimHeld)
	// In the middle of a deletion: marked, deleted, and the driver not asked yet; and asked already.
	leaving := v.snap("leaving", "data", isReady(), asSource, boundTo)
	v.leave(leaving, v.of(leaving, data, v.cut(leaving, data), beingDeleted))
	cleared := v.snap("cleared", "data", isReady(), asSource, boundTo)
	v.leave(cleared, v.of(cleared, data, "", beingDeleted))
	// Kept, with a mark of its own deletion that means nothing any more.
	keptFor := v.keep(data)
	kept := v.retain(v.of(keptFor, data, v.cut(keptFor, data), beingDeleted), "Retain")
	// Sources of a restore and of a clone that are long done, and a volume that goes.
	v.protectSnapshot("done", restoring)
	source := v.volume("source", func(c *corev1.PersistentVolumeClaim) { c.Finalizers = []string{cloning} })
	v.deleteClaim("source")
	released := v.volume("released")
	v.deleteClaim("released")
	before, err := v.kube.CoreV1().PersistentVolumes().Get(v.world.ctx, data.Name, metav1.GetOptions{})
	v.mustNot(err)

	v.start()
	if pv := v.bound("half"); pv.Name != "pvc-"+string(half.UID) || pv.Spec.CSI.VolumeHandle != handle {
		t.Errorf("the volume of the claim is %s with handle %q, want that which the driver has, %q", pv.Name, pv.Spec.CSI.VolumeHandle, handle)
	}
	v.ready("begun")
	_, content := v.ready("cutting")
	if _, marked := content.Annotations[beingCreated]; marked {
		t.Errorf("the content is marked: %v", content.Annotations)
	}
	for _, s := range []*snapv1.VolumeSnapshot{leaving, cleared} {
		v.snapshotGone(s.Name)
		v.contentGone("snapcontent-" + string(s.UID))
	}
	v.claimGone("source")
	v.volumeGone(source.Name)
	v.volumeGone(released.Name)
	v.await("sources are let go", func() (bool, string) {
		claim, err := v.readClaim("data")
		v.mustNot(err)
		snapshot, err := v.readSnapshot("done")
		v.mustNot(err)
		return slices.Equal(claim.Finalizers, []string{"kubernetes.io/pvc-protection"}) && slices.Equal(snapshot.Finalizers, []string{asSource, boundTo}),
			text(claim.Finalizers) + text(snapshot.Finalizers)
	})
	v.checkUntouched(before, settled, kept)
	v.checkDriver(1, "data", "half")
	v.deleteSnapshot("done")
	v.contentGone(settled.Name)
	v.deleteClaim("data")
	v.volumeGone(data.Name)
	v.checkSecrets("DeleteVolume", "DeleteSnapshot", "CreateSnapshot")
	// Whoever changes the policy of what was kept means it.
	v.retain(kept, "Delete")
	v.deleteContent(kept.Name)
	v.contentGone(kept.Name)
}

// retain writes the policy of a content.
func (v *vendor) retain(c *snapv1.VolumeSnapshotContent, policy string) *snapv1.VolumeSnapshotContent {
	v.past.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"deletionPolicy":%q}}`, policy)
	c, err := v.snaps.VolumeSnapshotContents().Patch(v.world.ctx, c.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	v.mustNot(err)
	return c
}

// protect writes a finalizer on a claim.
func (v *vendor) protect(claim, finalizer string) {
	v.past.Helper()
	patch := fmt.Appendf(nil, `[{"op":"add","path":"/metadata/finalizers/-","value":%q}]`, finalizer)
	v.must(v.kube.CoreV1().PersistentVolumeClaims(v.ns).Patch(v.world.ctx, claim, types.JSONPatchType, patch, metav1.PatchOptions{}))
}

func (v *vendor) protectSnapshot(name, finalizer string) {
	v.past.Helper()
	patch := fmt.Appendf(nil, `[{"op":"add","path":"/metadata/finalizers/-","value":%q}]`, finalizer)
	v.must(v.snaps.VolumeSnapshots(v.ns).Patch(v.world.ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{}))
}

// leave deletes both, as a user does the one and snapshot-controller the other.
func (v *vendor) leave(s *snapv1.VolumeSnapshot, c *snapv1.VolumeSnapshotContent) {
	v.past.Helper()
	v.deleteSnapshot(s.Name)
	v.deleteContent(c.Name)
}

// keep is a VolumeSnapshot that went when its policy was Retain.
func (v *vendor) keep(volume *corev1.PersistentVolume) *snapv1.VolumeSnapshot {
	v.past.Helper()
	s := v.snap("kept", volume.Spec.ClaimRef.Name, nil)
	v.deleteSnapshot("kept")
	v.snapshotGone("kept")
	return s
}

// checkUntouched: what was settled has not been written.
func (v *vendor) checkUntouched(volume *corev1.PersistentVolume, contents ...*snapv1.VolumeSnapshotContent) {
	v.past.Helper()
	now, err := v.kube.CoreV1().PersistentVolumes().Get(v.world.ctx, volume.Name, metav1.GetOptions{})
	v.mustNot(err)
	if now.ResourceVersion != volume.ResourceVersion {
		v.past.Errorf("the volume was written: %s", text(now))
	}
	for _, c := range contents {
		now, err := v.readContent(c.Name)
		v.mustNot(err)
		if now.ResourceVersion != c.ResourceVersion {
			v.past.Errorf("the content was written: %s", text(now))
		}
	}
}

// checkDriver: there is one volume for each of the claims, and what was deleted was deleted so many times.
func (v *vendor) checkDriver(deleted int, claims ...string) {
	v.past.Helper()
	if volumes := v.inventory().Volumes; len(volumes) != len(claims) {
		v.past.Errorf("the driver stores %s, want one for each of %q", text(volumes), claims)
	}
	if calls := v.calls("DeleteSnapshot"); len(calls) != deleted {
		v.past.Errorf("DeleteSnapshot was called %d times, want %d", len(calls), deleted)
	}
}

// checkSecrets: the calls that the sidecars have made had the secret that is on record.
func (v *vendor) checkSecrets(methods ...string) {
	v.past.Helper()
	for _, method := range methods {
		calls := v.calls(method)
		if len(calls) == 0 || !strings.Contains(string(calls[len(calls)-1].Request), `"token"`) {
			v.past.Errorf("%s was called %d times, the last time without the secret", method, len(calls))
		}
	}
}
