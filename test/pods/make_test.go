// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"strings"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/test/node"
)

// size is small, since block volumes have it for real.
const size = "8Mi"

func (w *world) claim(name, class string, edit ...func(*corev1.PersistentVolumeClaim)) {
	w.Helper()
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To(class), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
	}
	for _, e := range edit {
		e(c)
	}
	_, err := shared.stage.Kube.CoreV1().PersistentVolumeClaims(w.ns).Create(w.ctx, c, metav1.CreateOptions{})
	w.must(err)
}

func mode(modes ...corev1.PersistentVolumeAccessMode) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.AccessModes = modes }
}

func block(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock) }

func fromSnapshot(name string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ptr.To(snapGroup), Kind: "VolumeSnapshot", Name: name}
	}
}

func fromClaim(name string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: name}
	}
}

func (w *world) bound(name string) *corev1.PersistentVolumeClaim {
	w.Helper()
	var claim *corev1.PersistentVolumeClaim
	w.await("claim "+name+" is bound", func() (bool, string) {
		var err error
		claim, err = shared.stage.Kube.CoreV1().PersistentVolumeClaims(w.ns).Get(w.ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return claim.Status.Phase == corev1.ClaimBound, string(claim.Status.Phase)
	})
	return claim
}

func (w *world) snapshot(name, claim string) {
	w.Helper()
	_, err := shared.stage.Snapshots.SnapshotV1().VolumeSnapshots(w.ns).Create(w.ctx, &snapv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: snapv1.VolumeSnapshotSpec{
			VolumeSnapshotClassName: ptr.To(snapClass), Source: snapv1.VolumeSnapshotSource{PersistentVolumeClaimName: ptr.To(claim)},
		},
	}, metav1.CreateOptions{})
	w.must(err)
}

func (w *world) ready(name string) {
	w.Helper()
	w.await("snapshot "+name+" is ready", func() (bool, string) {
		v, err := shared.stage.Snapshots.SnapshotV1().VolumeSnapshots(w.ns).Get(w.ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return v.Status != nil && ptr.Deref(v.Status.ReadyToUse, false), "it is not"
	})
}

// pod makes a pod with a claim at /data, or at /dev/disk for a block volume.
func (w *world) pod(name, claim string, edit ...func(*corev1.Pod)) {
	w.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To(int64(1)),
			Containers: []corev1.Container{{
				Name: "app", Image: node.Shell, ImagePullPolicy: corev1.PullNever,
				VolumeMounts: []corev1.VolumeMount{{Name: "disk", MountPath: "/data"}},
			}},
			Volumes: []corev1.Volume{{Name: "disk", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			}}},
		},
	}
	for _, e := range edit {
		e(p)
	}
	_, err := shared.stage.Kube.CoreV1().Pods(w.ns).Create(w.ctx, p, metav1.CreateOptions{})
	w.must(err)
}

func on(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: name} }
}

func device(p *corev1.Pod) {
	c := &p.Spec.Containers[0]
	c.VolumeMounts, c.VolumeDevices = nil, []corev1.VolumeDevice{{Name: "disk", DevicePath: "/dev/disk"}}
}

func reader(p *corev1.Pod) { p.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = true }

// runs waits until a real kubelet runs the pod.
func (w *world) runs(name string) *corev1.Pod {
	w.Helper()
	var pod *corev1.Pod
	w.await("pod "+name+" runs", func() (bool, string) {
		var err error
		if pod, err = shared.stage.Kube.CoreV1().Pods(w.ns).Get(w.ctx, name, metav1.GetOptions{}); err != nil {
			return false, err.Error()
		}
		isUp := len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Running != nil
		return isUp, string(pod.Status.Phase) + " on " + pod.Spec.NodeName + ": " + w.warnings(name)
	})
	return pod
}

// warnings are what was said about an object.
func (w *world) warnings(name string) string {
	events, err := shared.stage.Kube.CoreV1().Events(w.ns).List(w.ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
	if err != nil {
		return err.Error()
	}
	var said []string
	for _, e := range events.Items {
		said = append(said, e.Reason+": "+e.Message)
	}
	return strings.Join(said, "; ")
}

// sh runs a script in a pod.
func (w *world) sh(pod *corev1.Pod, script string) (string, error) {
	return shared.stage.Machine.Exec(w.ctx, pod, "sh", "-c", script)
}

func (w *world) says(pod *corev1.Pod, script, want string) {
	w.Helper()
	got, err := w.sh(pod, script)
	if err != nil || strings.TrimSpace(got) != want {
		w.Errorf("%q in pod %s says %q, %v; want %q", script, pod.Name, got, err, want)
	}
}

// refuses wants a script to fail for the reason.
func (w *world) refuses(pod *corev1.Pod, script, reason string) {
	w.Helper()
	if got, err := w.sh(pod, script); err == nil || !strings.Contains(err.Error(), reason) {
		w.Errorf("%q in pod %s says %q, %v; it should have been refused with %q", script, pod.Name, got, err, reason)
	}
}

func (w *world) end(name string) {
	w.Helper()
	w.must(shared.cast.Kubelet.End(w.ctx, w.ns, name))
}

func (w *world) deleteClaim(name string) {
	w.Helper()
	w.must(shared.stage.Kube.CoreV1().PersistentVolumeClaims(w.ns).Delete(w.ctx, name, metav1.DeleteOptions{}))
}

func (w *world) claimGone(name string) {
	w.Helper()
	w.await("claim "+name+" is gone", func() (bool, string) {
		_, err := shared.stage.Kube.CoreV1().PersistentVolumeClaims(w.ns).Get(w.ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), "it is there"
	})
}
