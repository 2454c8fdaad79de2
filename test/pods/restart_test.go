// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNodeRestart: a node loses its power while one pod writes to a file system and one to a device. Snapshots go on
// meanwhile, the containers come back on the same node with their data, and what the driver knows of the uses of the volumes
// from before does not keep them from being deleted. While the node is down, whoever asks about a claim hears that, of a pod
// that ran there and of one that is sent there: nobody here marks the node, so that its own condition says that it is ready.
// Not parallel: it takes the pods of all others with it.
func TestNodeRestart(t *testing.T) {
	needsTime(t)
	needsDevices(t)
	w := begin(t)
	w.claim("disk", late)
	w.claim("raw", late, block)
	w.pod("files", "disk", on(second))
	w.pod("blocks", "raw", on(second), device)
	files, blocks := w.runs("files"), w.runs("blocks")
	w.says(files, "echo survives > /data/file && sync && echo ok", "ok")
	w.says(blocks, "echo survives | dd of=/dev/disk bs=512 conv=sync 2>/dev/null && sync && echo ok", "ok")

	w.must(shared.stage.Machine.Crash(w.ctx, second))
	w.snapshot("snap", "disk")
	w.ready("snap")
	w.claim("copy", immediate, fromSnapshot("snap"))
	w.bound("copy")
	w.pod("late", "disk", on(second))
	silent := "because nothing has been heard of the kubelet of node " + second
	w.explain(shared.provisioner, "disk", "state Bound,", "late is on node "+second+" and has not started "+silent, "files was running on node "+second+" "+silent,
		"what helps: bring node "+second+" back")
	w.explain(shared.provisioner, "raw", "blocks was running on node "+second+" "+silent)
	w.must(shared.stage.Machine.Boot(w.ctx, second))

	w.awaitRestart(files)
	w.awaitRestart(blocks)
	w.says(w.runs("files"), "cat /data/file", "survives")
	w.says(w.runs("late"), "cat /data/file", "survives")
	w.explain(shared.provisioner, "disk", "files runs on node "+second, "late runs on node "+second)
	w.end("late")
	w.says(w.runs("blocks"), "dd if=/dev/disk bs=8 count=1 2>/dev/null", "survives")
	w.pod("copied", "copy")
	w.says(w.runs("copied"), "cat /data/file", "survives")
	for pod, claim := range map[string]string{"files": "disk", "blocks": "raw", "copied": "copy"} {
		w.end(pod)
		w.deleteClaim(claim)
		w.claimGone(claim)
	}
}

// awaitRestart waits until another container runs in the same pod.
func (w *world) awaitRestart(before *corev1.Pod) {
	w.Helper()
	w.await("pod "+before.Name+" runs again", func() (bool, string) {
		pod, err := shared.stage.Kube.CoreV1().Pods(w.ns).Get(w.ctx, before.Name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		if pod.UID != before.UID || len(pod.Status.ContainerStatuses) == 0 {
			return false, "it is another pod"
		}
		s := pod.Status.ContainerStatuses[0]
		return s.State.Running != nil && s.ContainerID != before.Status.ContainerStatuses[0].ContainerID, w.warnings(before.Name)
	})
}

// TestDriverKilled: the driver is killed under a pod that has a device. The pod goes on; the next driver registers with the
// same kubelets, finds the device again for a second pod, and lets the volume go when both are gone. Catches devices and
// mounts that are known to a process only. Not parallel: it is the driver of all others too.
func TestDriverKilled(t *testing.T) {
	needsTime(t)
	needsDevices(t)
	w := begin(t)
	w.claim("raw", late, block)
	w.pod("before", "raw", on(first), device)
	before := w.runs("before")
	w.says(before, "echo before | dd of=/dev/disk bs=512 conv=sync 2>/dev/null && sync && echo ok", "ok")
	shared.cast.Driver.Kill()
	w.says(before, "dd if=/dev/disk bs=6 count=1 2>/dev/null", "before")
	w.await("the driver is there again", func() (bool, string) {
		// What it was started through is gone before its last breath, and until then it holds its folder.
		if err := shared.cast.Driver.Start(); err != nil {
			return false, err.Error()
		}
		_, err := shared.cast.Control.Inventory(w.ctx)
		return err == nil, "it does not answer"
	})
	shared.cast.Driver.Forgive()
	w.pod("after", "raw", on(first), device)
	after := w.runs("after")
	w.says(after, "dd if=/dev/disk bs=6 count=1 2>/dev/null", "before")
	w.says(after, "echo after | dd of=/dev/disk bs=512 conv=sync 2>/dev/null && sync && echo ok", "ok")
	w.says(before, "dd if=/dev/disk bs=5 count=1 2>/dev/null", "after")
	w.end("before")
	w.end("after")
	w.deleteClaim("raw")
	w.claimGone("raw")
}

// needsTime leaves out of the short form what runs alone.
func needsTime(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("make e2e-pods runs it")
	}
}
