// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestEveryNodeForItself has a driver and a pair on each of three nodes: all that is made, cut, restored and deleted
// has to be so by the pair of the node that has the data.
func TestEveryNodeForItself(t *testing.T) {
	t.Parallel()
	pools := map[string]int{"control-plane": 4, "worker-1": 7, "worker-2": 7} // GiB, and each claim asks for one
	f := beginFleet(t, map[string]string{"control-plane": "4Gi", "worker-1": "7Gi", "worker-2": "7Gi"})
	anywhere, only2 := f.class("any"), f.class("only2", onHosts("worker-2"))

	// T98: claims without a node spread: each gets one, no node takes more than it has room for, and so no node can have all. Which of two
	// with room is sooner is up to chance; that more room makes sooner is looked at where the clock stands still (TestClaimsSpreadByRoom).
	f.checkSpread(anywhere, pools)
	f.checkCopies(anywhere, only2)
	// T97: a pod chooses the node.
	late := f.class("late", waiting)
	f.claim("late", late)
	f.pod("app", "late", "worker-1")
	volume := f.bound("late")
	if node := f.place(volume); node != "worker-1" {
		t.Errorf("T97: the volume is on %s", node)
	}
	f.endPod("app")
	// T100: only the node with the volume deletes it.
	before := f.callsOn("worker-2", "DeleteVolume") + f.callsOn("control-plane", "DeleteVolume")
	f.mustNot(f.kube.CoreV1().PersistentVolumeClaims(f.ns).Delete(f.ctx, "late", metav1.DeleteOptions{}))
	f.gone("the volume of late", func() error {
		_, err := f.kube.CoreV1().PersistentVolumes().Get(f.ctx, volume.Name, metav1.GetOptions{})
		return err
	})
	if after := f.callsOn("worker-2", "DeleteVolume") + f.callsOn("control-plane", "DeleteVolume"); after != before {
		t.Errorf("T100: other nodes were asked %d times to delete the volume", after-before)
	}
}

// checkSpread has twelve claims served by three nodes of which none has room for all, and makes room again.
func (f *fleet) checkSpread(class string, pools map[string]int) {
	f.Helper()
	const claims = 12
	for i := range claims {
		f.claim(fmt.Sprint("any-", i), class)
	}
	on := map[string]int{}
	var volumes []string
	for i := range claims {
		volume := f.bound(fmt.Sprint("any-", i))
		volumes = append(volumes, volume.Name)
		on[f.place(volume)]++
	}
	f.Logf("volumes on %v", on)
	stored := 0
	for node, room := range pools {
		if on[node] > room {
			f.Errorf("T98: %d volumes on %s, which has room for %d", on[node], node, room)
		}
		inventory, err := f.casts[node].Control.Inventory(f.ctx)
		f.mustNot(err)
		stored += len(inventory.Volumes)
	}
	if stored != claims { // a node that is full may refuse a call; what counts is what is there
		f.Errorf("T98: %d claims are %d volumes", claims, stored)
	}
	for i, volume := range volumes {
		f.deleteClaim(fmt.Sprint("any-", i))
		f.volumeGone(volume)
	}
}

// checkCopies looks where snapshots, restores and clones of a volume on worker-2 are, and who deletes the snapshot (S96, S97).
func (f *fleet) checkCopies(anywhere, only2 string) {
	f.Helper()
	f.claim("origin", only2)
	if node := f.place(f.bound("origin")); node != "worker-2" {
		f.Errorf("T99: the volume is on %s", node)
	}
	f.snapshot("monday", "origin", f.snapshotClass("cut"))
	_, content := f.ready("monday")
	if node := f.taken(content); node != "worker-2" {
		f.Errorf("S97: the snapshot is on %q", node)
	}
	f.claim("again", anywhere, fromSnapshot("monday"))
	if node := f.place(f.bound("again")); node != "worker-2" {
		f.Errorf("the restore is on %s", node)
	}
	f.claim("copy", anywhere, fromClaim("origin"))
	if node := f.place(f.bound("copy")); node != "worker-2" {
		f.Errorf("the clone is on %s", node)
	}
	f.deleteSnapshot("monday")
	f.snapshotGone("monday")
	f.contentGone(content.Name)
	for _, node := range []string{"control-plane", "worker-1"} {
		if calls := f.callsOn(node, "CreateSnapshot") + f.callsOn(node, "DeleteSnapshot"); calls != 0 {
			f.Errorf("S96: %s was asked %d times about a snapshot of worker-2", node, calls)
		}
	}
	if calls := f.callsOn("worker-2", "DeleteSnapshot"); calls == 0 {
		f.Error("S96: nobody has deleted the snapshot at its driver")
	}
}

// TestOneNodeDies kills the pair of a node while it has work, and lets it come back.
func TestOneNodeDies(t *testing.T) {
	t.Parallel()
	f := beginFleet(t, map[string]string{"control-plane": "50Gi", "worker-1": "50Gi", "worker-2": "50Gi"})
	classes := map[string]string{}
	for _, node := range []string{"control-plane", "worker-1", "worker-2"} {
		classes[node] = f.class("on-"+node, onHosts(node))
	}
	cut := f.snapshotClass("cut")
	f.claim("keeps", classes["worker-1"])
	f.claim("goes", classes["worker-1"])
	going := f.bound("goes")
	f.place(f.bound("keeps"))
	for _, p := range f.pairs["worker-1"] {
		p.Kill()
	}
	// All of this is work of the node whose pair is dead.
	f.claim("new", f.class("late", waiting))
	f.pod("app", "new", "worker-1")
	f.snapshot("cut", "keeps", cut)
	f.mustNot(f.kube.CoreV1().PersistentVolumeClaims(f.ns).Delete(f.ctx, "goes", metav1.DeleteOptions{}))
	// And this is that of the others.
	for _, node := range []string{"control-plane", "worker-2"} {
		f.claim("on-"+node, classes[node])
		if on := f.place(f.bound("on-" + node)); on != node {
			t.Errorf("the volume for %s is on %s", node, on)
		}
		f.snapshot("of-"+node, "on-"+node, cut)
		_, content := f.ready("of-" + node)
		if on := f.taken(content); on != node {
			t.Errorf("the snapshot of the volume on %s is on %s", node, on)
		}
	}
	released, err := f.kube.CoreV1().PersistentVolumes().Get(f.ctx, going.Name, metav1.GetOptions{})
	f.mustNot(err)
	if on := f.on(going.Spec.CSI.VolumeHandle); on != "worker-1" || len(released.Finalizers) == 0 {
		t.Errorf("the volume of the dead node is stored on %q, and held by %q", on, released.Finalizers)
	}
	if claim, err := f.readClaim("new"); err != nil || claim.Status.Phase != corev1.ClaimPending {
		t.Errorf("the claim for the dead node is %v, %v", claim, err)
	}
	a := asker{f.world, f.reader()}
	a.says(f.pairs["worker-2"][0], []string{"-n", f.ns, "new", "--node-deployment", "--csi-address="}, "the provisioner of node worker-1", "[Create]")
	a.says(f.pairs["worker-2"][0], []string{"-n", f.ns, "keeps", "--node-deployment", "--csi-address="}, "the provisioner of node worker-1")
	for _, p := range f.pairs["worker-1"] {
		f.mustNot(p.Start())
	}
	f.place(f.bound("new"))
	_, content := f.ready("cut")
	if on := f.taken(content); on != "worker-1" {
		t.Errorf("the snapshot is on %s", on)
	}
	f.gone("the volume that waited", func() error {
		_, err := f.kube.CoreV1().PersistentVolumes().Get(f.ctx, going.Name, metav1.GetOptions{})
		return err
	})
}
