// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
	"github.com/csi-tandem/csi-tandem/examples/driver/script"
	"github.com/csi-tandem/csi-tandem/test/stage"
)

func (w *world) readClaim(name string) (*corev1.PersistentVolumeClaim, error) {
	return w.kube.CoreV1().PersistentVolumeClaims(w.ns).Get(w.ctx, name, metav1.GetOptions{})
}

func (w *world) readSnapshot(name string) (*snapv1.VolumeSnapshot, error) {
	return w.snaps.VolumeSnapshots(w.ns).Get(w.ctx, name, metav1.GetOptions{})
}

func (w *world) readContent(name string) (*snapv1.VolumeSnapshotContent, error) {
	return w.snaps.VolumeSnapshotContents().Get(w.ctx, name, metav1.GetOptions{})
}

// bound waits until a claim is bound, and returns its volume.
func (w *world) bound(name string) *corev1.PersistentVolume {
	w.Helper()
	var pv *corev1.PersistentVolume
	w.await("claim "+name+" is Bound", func() (bool, string) {
		claim, err := w.readClaim(name)
		if err != nil {
			return unreadable(err)
		}
		if claim.Status.Phase != corev1.ClaimBound {
			return false, fmt.Sprintf("it is %s; events: %q", claim.Status.Phase, w.messages(name))
		}
		pv, err = w.kube.CoreV1().PersistentVolumes().Get(w.ctx, claim.Spec.VolumeName, metav1.GetOptions{})
		if err != nil {
			return unreadable(err)
		}
		return pv.Status.Phase == corev1.VolumeBound, "its volume is " + string(pv.Status.Phase)
	})
	return pv
}

// ready waits until a snapshot can be used, and returns it with its content.
func (w *world) ready(name string) (*snapv1.VolumeSnapshot, *snapv1.VolumeSnapshotContent) {
	w.Helper()
	var v *snapv1.VolumeSnapshot
	w.await("snapshot "+name+" is ready", func() (bool, string) {
		var err error
		if v, err = w.readSnapshot(name); err != nil {
			return unreadable(err)
		}
		if v.Status == nil || !ptr.Deref(v.Status.ReadyToUse, false) {
			return false, fmt.Sprintf("status %s; events: %q", text(v.Status), w.messages(name))
		}
		return v.Status.BoundVolumeSnapshotContentName != nil, "it names no content"
	})
	c, err := w.readContent(*v.Status.BoundVolumeSnapshotContentName)
	w.mustNot(err)
	return v, c
}

// gone waits until a read says NotFound.
func (w *world) gone(what string, read func() error) {
	w.Helper()
	w.await(what+" is gone", func() (bool, string) {
		err := read()
		if apierrors.IsNotFound(err) {
			return true, ""
		}
		return false, fmt.Sprint("it is there; error ", err)
	})
}

func (w *world) claimGone(name string) {
	w.Helper()
	w.gone("claim "+name, func() error { _, err := w.readClaim(name); return err })
}

func (w *world) volumeGone(name string) {
	w.Helper()
	w.gone("volume "+name, func() error {
		_, err := w.kube.CoreV1().PersistentVolumes().Get(w.ctx, name, metav1.GetOptions{})
		return err
	})
}

func (w *world) snapshotGone(name string) {
	w.Helper()
	w.gone("snapshot "+name, func() error { _, err := w.readSnapshot(name); return err })
}

func (w *world) contentGone(name string) {
	w.Helper()
	w.gone("content "+name, func() error { _, err := w.readContent(name); return err })
}

func (w *world) deleteClaim(name string) {
	w.Helper()
	w.mustNot(w.kube.CoreV1().PersistentVolumeClaims(w.ns).Delete(w.ctx, name, metav1.DeleteOptions{}))
}

func (w *world) deleteSnapshot(name string) {
	w.Helper()
	w.mustNot(w.snaps.VolumeSnapshots(w.ns).Delete(w.ctx, name, metav1.DeleteOptions{}))
}

func (w *world) deleteContent(name string) {
	w.Helper()
	w.mustNot(w.snaps.VolumeSnapshotContents().Delete(w.ctx, name, metav1.DeleteOptions{}))
}

// runs waits until a pod has a node, and publishes its volume there.
func (w *world) runs(name string) (stage.Folder, *corev1.Pod) {
	w.Helper()
	var pod *corev1.Pod
	w.await("pod "+name+" has a node", func() (bool, string) {
		var err error
		if pod, err = w.kube.CoreV1().Pods(w.ns).Get(w.ctx, name, metav1.GetOptions{}); err != nil {
			return unreadable(err)
		}
		return pod.Spec.NodeName != "", text(pod.Status.Conditions)
	})
	folders, err := w.cast.Kubelet.Run(w.ctx, pod)
	w.mustNot(err)
	return folders["disk"], pod
}

func (w *world) endPod(name string) {
	w.Helper()
	w.mustNot(w.cast.Kubelet.End(w.ctx, w.ns, name))
}

// messages are what was said about an object of some name, reasons included.
func (w *world) messages(name string) []string {
	var all []string
	// Events of what has no namespace are in the default one.
	for _, namespace := range []string{w.ns, metav1.NamespaceDefault} {
		events, err := w.kube.CoreV1().Events(namespace).List(w.ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
		if err != nil {
			return append(all, err.Error())
		}
		for _, e := range events.Items {
			all = append(all, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Message))
		}
	}
	return all
}

// told waits until there is an event of an object that has all of these words in it.
func (w *world) told(name string, words ...string) {
	w.Helper()
	w.await(fmt.Sprintf("there is an event of %s with %q", name, words), func() (bool, string) {
		all := w.messages(name)
		for _, message := range all {
			if containsAll(message, words) {
				return true, ""
			}
		}
		return false, fmt.Sprintf("there are %q", all)
	})
}

func containsAll(message string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(message, word) {
			return false
		}
	}
	return true
}

func (w *world) inventory() control.Inventory {
	w.Helper()
	inventory, err := w.script.Inventory(w.ctx)
	w.mustNot(err)
	return inventory
}

// calls are those of one method that the driver was asked, oldest first.
func (w *world) calls(method string) []script.Call {
	w.Helper()
	calls, err := w.script.Calls(w.ctx, method)
	w.mustNot(err)
	return calls
}

// awaitCalls waits until a method was called at least so often.
func (w *world) awaitCalls(method string, count int) {
	w.Helper()
	w.await(fmt.Sprintf("%s was called %d times", method, count), func() (bool, string) {
		calls := w.calls(method)
		return len(calls) >= count, fmt.Sprintf("it was called %d times", len(calls))
	})
}

// request decodes what a call brought.
func request[T any](w *world, call script.Call) T {
	w.Helper()
	var r T
	w.mustNot(json.Unmarshal(call.Request, &r))
	return r
}

func text(value any) string {
	content, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(content)
}
