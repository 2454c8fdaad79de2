// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
)

// TestFileSystem: what one pod wrote, the next one reads, and the kubelet knows how full the volume is. Catches volumes whose
// data is somewhere else for each pod.
func TestFileSystem(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.claim("disk", late)
	w.explain(shared.provisioner, "disk", "WaitForFirstConsumer", "used by no pod", "start a pod that uses the claim")
	w.pod("writer", "disk", on(first))
	pod := w.runs("writer")
	w.says(pod, "echo hello > /data/file && sync && cat /data/file", "hello")
	w.await("the kubelet asks how full it is", func() (bool, string) {
		calls, err := shared.cast.Control.Calls(w.ctx, "NodeGetVolumeStats")
		if err != nil {
			return false, err.Error()
		}
		for _, c := range calls {
			if c.Code == codes.OK && strings.Contains(string(c.Request), string(pod.UID)) {
				return true, ""
			}
		}
		return false, "it has not"
	})
	w.end("writer")
	w.pod("reader", "disk")
	next := w.runs("reader")
	w.says(next, "cat /data/file", "hello")
	if next.Spec.NodeName != first {
		t.Errorf("it runs on %s, and its volume is on %s", next.Spec.NodeName, first)
	}
	w.explain(shared.provisioner, "disk", "the claim has a volume")
}

// TestBlock: a pod has a device of the size that was asked for, the next one reads what was written to it, and so does one
// with a restored copy. Catches a driver that publishes files, which no runtime takes, and one that leaks devices: the end of
// the stage looks for them.
func TestBlock(t *testing.T) {
	t.Parallel()
	needsDevices(t)
	w := begin(t)
	w.claim("raw", immediate, block)
	w.bound("raw")
	w.pod("writer", "raw", device)
	pod := w.runs("writer")
	w.says(pod, "test -b /dev/disk && blockdev --getsize64 /dev/disk", "8388608")
	w.says(pod, "echo 0123456789abcde | dd of=/dev/disk bs=512 conv=sync 2>/dev/null && sync && dd if=/dev/disk bs=15 count=1 2>/dev/null", "0123456789abcde")
	w.end("writer")
	w.snapshot("snap", "raw")
	w.ready("snap")
	w.claim("copy", immediate, block, fromSnapshot("snap"))
	for name, claim := range map[string]string{"again": "raw", "copied": "copy"} {
		w.pod(name, claim, device)
		w.says(w.runs(name), "dd if=/dev/disk bs=15 count=1 2>/dev/null", "0123456789abcde")
	}
}

// TestReadOnlyMany: two pods read one restored volume at the same time, and neither can write to it.
func TestReadOnlyMany(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.claim("source", immediate)
	w.pod("writer", "source")
	w.says(w.runs("writer"), "echo shared > /data/file && sync && echo ok", "ok")
	w.snapshot("snap", "source")
	w.ready("snap")
	w.claim("many", immediate, fromSnapshot("snap"), mode(corev1.ReadOnlyMany))
	for _, name := range []string{"one", "two"} {
		w.pod(name, "many", reader)
	}
	for _, name := range []string{"one", "two"} {
		pod := w.runs(name)
		w.says(pod, "cat /data/file", "shared")
		w.refuses(pod, "echo mine > /data/file", "Read-only file system")
	}
}

// TestReadWriteOncePod: the second pod is kept out while the first one is there, and comes in when it is gone. Whoever asks about
// the claim meanwhile hears who has it. Catches an explanation that has nothing to say of a claim once it is bound.
func TestReadWriteOncePod(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.claim("alone", immediate, mode(corev1.ReadWriteOncePod))
	w.pod("holder", "alone")
	w.says(w.runs("holder"), "echo held > /data/file && sync && echo ok", "ok")
	w.pod("waiter", "alone")
	w.await("the waiter is kept out", func() (bool, string) {
		said := w.warnings("waiter")
		return strings.Contains(said, "ReadWriteOncePod"), said
	})
	holder := w.runs("holder").Spec.NodeName
	w.explain(shared.provisioner, "alone", "state Bound,", "used by 2 pods: waiter, holder", "waiter is on no node yet",
		"because the claim is for one pod at a time (ReadWriteOncePod), and pod holder on node "+holder+" has it",
		"because Unschedulable: 0/2 nodes are available", "what helps: end pod holder", "holder runs on node "+holder)
	pod, err := shared.stage.Kube.CoreV1().Pods(w.ns).Get(w.ctx, "waiter", metav1.GetOptions{})
	w.must(err)
	if pod.Spec.NodeName != "" || pod.Status.Phase != corev1.PodPending {
		t.Errorf("the waiter is %s on %q", pod.Status.Phase, pod.Spec.NodeName)
	}
	w.end("holder")
	waiter := w.runs("waiter")
	w.says(waiter, "cat /data/file", "held")
	w.explain(shared.provisioner, "alone", "used by pod waiter", "waiter runs on node "+waiter.Spec.NodeName)
}

// TestReadOnly: one pod writes, another one of the same node that only reads sees it, and cannot write.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.claim("disk", late)
	w.pod("writer", "disk", on(second))
	w.pod("onlooker", "disk", on(second), reader)
	writer, onlooker := w.runs("writer"), w.runs("onlooker")
	w.says(writer, "echo news > /data/file && sync && echo ok", "ok")
	w.says(onlooker, "cat /data/file", "news")
	w.refuses(onlooker, "rm /data/file", "Read-only file system")
}

// TestGroup: files of the volume belong to the group of the pod, and somebody who is only in that group may write.
func TestGroup(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.claim("disk", immediate)
	w.pod("member", "disk", func(p *corev1.Pod) {
		p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To(int64(1000)), FSGroup: ptr.To(int64(2000))}
	})
	pod := w.runs("member")
	w.says(pod, "stat -c %g /data", "2000")
	w.says(pod, "id -u; echo mine > /data/file; stat -c %u:%g /data/file", "1000\n1000:2000")
}

// TestClone: a claim is copied while its pod has it open, and the copy goes its own way.
func TestClone(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.claim("source", immediate)
	w.pod("writer", "source")
	writer := w.runs("writer")
	w.says(writer, "echo before > /data/file && sync && echo ok", "ok")
	rule, err := shared.cast.Control.Hang(w.ctx, control.On("CreateVolume").About(w.nameOf("copy", fromClaim("source"))), 0)
	w.must(err)
	w.explain(shared.provisioner, "copy", "driver")
	w.must(shared.cast.Control.Release(w.ctx, rule))
	w.bound("copy")
	w.says(writer, "echo after > /data/file && sync && cat /data/file", "after")
	w.pod("copied", "copy")
	w.says(w.runs("copied"), "cat /data/file; echo own > /data/file", "before")
	w.says(writer, "cat /data/file", "after")
}

// nameOf makes a claim and gives the name that its volume will have.
func (w *world) nameOf(name string, edit ...func(*corev1.PersistentVolumeClaim)) string {
	w.Helper()
	w.claim(name, immediate, edit...)
	claim, err := shared.stage.Kube.CoreV1().PersistentVolumeClaims(w.ns).Get(w.ctx, name, metav1.GetOptions{})
	w.must(err)
	return "pvc-" + string(claim.UID)
}

// TestDeletionInUse: a claim that is deleted under its pod stays until the pod is gone, with its data, and then everything
// goes. Catches a volume that is deleted while somebody reads it.
func TestDeletionInUse(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.claim("disk", immediate)
	volume := w.bound("disk").Spec.VolumeName
	w.pod("user", "disk")
	pod := w.runs("user")
	w.says(pod, "echo kept > /data/file && sync && echo ok", "ok")
	w.deleteClaim("disk")
	w.explain(shared.provisioner, "disk", "kubernetes.io/pvc-protection", "used by pod user", "user runs on node "+pod.Spec.NodeName)
	w.says(pod, "cat /data/file", "kept")
	claim, err := shared.stage.Kube.CoreV1().PersistentVolumeClaims(w.ns).Get(w.ctx, "disk", metav1.GetOptions{})
	if err != nil || claim.DeletionTimestamp == nil {
		t.Errorf("the claim is %v, %v", claim, err)
	}
	w.end("user")
	w.claimGone("disk")
	w.await("the driver has no such volume any more", func() (bool, string) {
		stored, err := shared.cast.Control.Inventory(w.ctx)
		if err != nil {
			return false, err.Error()
		}
		for _, v := range stored.Volumes {
			if v.Name == volume {
				return false, "it has"
			}
		}
		return true, ""
	})
}
