// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// end is what every test ends with, so that each is a test of leaks as well: while its objects are there, everything that
// the driver stores belongs to one of them; then all is deleted, and nothing may be left.
func (w *world) end() {
	w.Helper()
	if w.Failed() {
		w.explain()
		return
	}
	defer func() {
		if w.Failed() {
			w.explain()
		}
	}()
	w.await("all that the driver stores belongs to an object (A1, A2)", w.everythingOwned)
	w.checkLivingVolumes()
	w.sweep()
	w.await("nothing is left, in the cluster and at the driver (A3)", w.nothingLeft)
	w.checkCalls()
	for _, p := range w.cast.Processes() {
		for _, death := range p.Deaths() {
			w.Errorf("A4: %s", death)
		}
	}
	w.mustNot(w.kube.CoreV1().Namespaces().Delete(w.ctx, w.ns, metav1.DeleteOptions{}))
	w.mustNot(w.kube.StorageV1().StorageClasses().DeleteCollection(w.ctx, metav1.DeleteOptions{}, w.mine()))
	w.mustNot(w.snaps.VolumeSnapshotClasses().DeleteCollection(w.ctx, metav1.DeleteOptions{}, w.mine()))
}

func (w *world) mine() metav1.ListOptions { return metav1.ListOptions{LabelSelector: "e2e=" + w.ns} }

// volumes are those of the world's driver.
func (w *world) volumes() ([]corev1.PersistentVolume, error) {
	all, err := w.kube.CoreV1().PersistentVolumes().List(w.ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all.Items, func(v corev1.PersistentVolume) bool {
		return v.Spec.CSI == nil || v.Spec.CSI.Driver != w.driver
	}), nil
}

// handles are the ids of volumes and snapshots that objects name.
func (w *world) handles() (map[string]bool, error) {
	named := map[string]bool{}
	volumes, err := w.volumes()
	if err != nil {
		return nil, err
	}
	for _, v := range volumes {
		named[v.Spec.CSI.VolumeHandle] = true
	}
	contents, err := w.snaps.VolumeSnapshotContents().List(w.ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, c := range contents.Items {
		if c.Spec.Driver != w.driver {
			continue
		}
		named[ptr.Deref(c.Spec.Source.SnapshotHandle, "")] = true
		if c.Status != nil {
			named[ptr.Deref(c.Status.SnapshotHandle, "")] = true
		}
	}
	return named, nil
}

func (w *world) everythingOwned() (bool, string) {
	named, err := w.handles()
	if err != nil {
		return unreadable(err)
	}
	inventory, err := w.script.Inventory(w.ctx)
	if err != nil {
		return unreadable(err)
	}
	var orphans []string
	for _, v := range inventory.Volumes {
		if !named[v.ID] {
			orphans = append(orphans, "volume "+v.Name)
		}
	}
	for _, s := range inventory.Snapshots {
		if !named[s.ID] {
			orphans = append(orphans, "snapshot "+s.Name)
		}
	}
	return len(orphans) == 0, fmt.Sprintf("nobody knows of %q", orphans)
}

// checkLivingVolumes: A6, a volume whose claim lives was never to be deleted.
func (w *world) checkLivingVolumes() {
	w.Helper()
	volumes, err := w.volumes()
	w.mustNot(err)
	for _, v := range volumes {
		if v.Status.Phase != corev1.VolumeBound {
			continue
		}
		for _, call := range w.calls("DeleteVolume") {
			if strings.Contains(string(call.Request), `"`+v.Spec.CSI.VolumeHandle+`"`) {
				w.Errorf("A6: DeleteVolume was called for %s, whose claim %s lives", v.Spec.CSI.VolumeHandle, v.Spec.ClaimRef.Name)
			}
		}
	}
}

// sweep deletes all that a user has made. What follows from that is up to the controllers.
func (w *world) sweep() {
	w.Helper()
	pods, err := w.kube.CoreV1().Pods(w.ns).List(w.ctx, metav1.ListOptions{})
	w.mustNot(err)
	for _, p := range pods.Items {
		w.endPod(p.Name)
	}
	w.mustNot(w.snaps.VolumeSnapshots(w.ns).DeleteCollection(w.ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	w.mustNot(w.snaps.VolumeSnapshotContents().DeleteCollection(w.ctx, metav1.DeleteOptions{}, w.mine()))
	w.mustNot(w.kube.CoreV1().PersistentVolumeClaims(w.ns).DeleteCollection(w.ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
}

func (w *world) nothingLeft() (bool, string) {
	var left []string
	claims, err := w.kube.CoreV1().PersistentVolumeClaims(w.ns).List(w.ctx, metav1.ListOptions{})
	if err != nil {
		return unreadable(err)
	}
	for _, c := range claims.Items {
		left = append(left, fmt.Sprintf("claim %s with finalizers %q", c.Name, c.Finalizers))
	}
	volumes, err := w.volumes()
	if err != nil {
		return unreadable(err)
	}
	for _, v := range volumes {
		left = append(left, fmt.Sprintf("volume %s, %s, with finalizers %q and events %q", v.Name, v.Status.Phase, v.Finalizers, w.messages(v.Name)))
	}
	snapshots, err := w.snaps.VolumeSnapshots(w.ns).List(w.ctx, metav1.ListOptions{})
	if err != nil {
		return unreadable(err)
	}
	for _, s := range snapshots.Items {
		left = append(left, fmt.Sprintf("snapshot %s with finalizers %q", s.Name, s.Finalizers))
	}
	contents, err := w.snaps.VolumeSnapshotContents().List(w.ctx, metav1.ListOptions{})
	if err != nil {
		return unreadable(err)
	}
	for _, c := range contents.Items {
		if c.Spec.Driver == w.driver {
			left = append(left, fmt.Sprintf("content %s with finalizers %q, annotations %v", c.Name, c.Finalizers, c.Annotations))
		}
	}
	inventory, err := w.script.Inventory(w.ctx)
	if err != nil {
		return unreadable(err)
	}
	for _, v := range inventory.Volumes {
		left = append(left, "at the driver: volume "+v.Name)
	}
	for _, s := range inventory.Snapshots {
		left = append(left, "at the driver: snapshot "+s.Name)
	}
	return len(left) == 0, fmt.Sprintf("there is %q", left)
}

// checkCalls: A5, no object cost more successful calls than it may. Polling for readiness is not counted.
func (w *world) checkCalls() {
	w.Helper()
	for method, field := range map[string]string{"CreateVolume": "name", "DeleteVolume": "volume_id", "DeleteSnapshot": "snapshot_id"} {
		counts := map[string]int{}
		for _, call := range w.calls(method) {
			if call.Code == codes.OK && !call.End.IsZero() {
				object, _ := request[map[string]any](w, call)[field].(string)
				counts[object]++
			}
		}
		for object, count := range counts {
			if count > w.repeats {
				w.Errorf("A5: %s succeeded %d times for %s, %d are enough", method, count, object, w.repeats)
			}
		}
	}
}

// explain shows everything that could say why a test failed.
func (w *world) explain() {
	w.Helper()
	var all strings.Builder
	show := func(kind string, object any, err error) {
		content, marshalErr := yaml.Marshal(object)
		fmt.Fprintf(&all, "--- %s (errors %v, %v)\n%s", kind, err, marshalErr, content)
	}
	claims, err := w.kube.CoreV1().PersistentVolumeClaims(w.ns).List(w.ctx, metav1.ListOptions{})
	show("claims", claims.Items, err)
	volumes, err := w.volumes()
	show("volumes", volumes, err)
	snapshots, err := w.snaps.VolumeSnapshots(w.ns).List(w.ctx, metav1.ListOptions{})
	show("snapshots", snapshots.Items, err)
	contents, err := w.snaps.VolumeSnapshotContents().List(w.ctx, w.mine())
	show("contents", contents.Items, err)
	calls, err := w.script.Calls(w.ctx, "")
	fmt.Fprintf(&all, "--- calls (error %v)\n", err)
	for _, c := range calls {
		fmt.Fprintf(&all, "%s %s %s %s %s\n", c.Start.Format("15:04:05.000"), c.Method, c.Code, c.Message, c.Request)
	}
	file := filepath.Join(w.cast.Dir(), "explain.txt")
	if err := os.WriteFile(file, []byte(all.String()), 0o600); err != nil {
		w.Log(err)
	}
	for _, p := range w.cast.Processes() {
		if p != w.cast.Driver {
			w.Logf("the end of the log of the %s, %s:\n%s", p.Name, p.Log, p.LogTail(12))
		}
	}
	w.Logf("objects and calls are in %s", file)
}
