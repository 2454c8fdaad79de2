// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/test/node"
)

// podPatience is for a real kubelet to run a pod, or to end one.
const podPatience = 2 * time.Minute

const podPoll = 100 * time.Millisecond

func (c *Cast) isReal(name string) bool {
	return c.stage.Machine != nil && c.stage.Machine.Has(name)
}

// moveIn makes the driver start where the real nodes are, and register with those on which it is to be.
func (c *Cast) moveIn(roles Roles) {
	if c.stage.Machine == nil {
		return
	}
	d := c.Driver
	for name := range roles.Topology {
		if c.isReal(name) {
			d.Args = append(d.Args, "--kubelet="+name+"="+c.stage.Machine.Dir(name))
		}
	}
	d.Path, d.Args = c.stage.Machine.Inside(filepath.Base(c.dir), d.Path, d.Args)
}

// checkSockets refuses names that no socket can have.
func (c *Cast) checkSockets(controls string, roles Roles) error {
	paths := []string{controls}
	for name := range roles.Topology {
		if c.isReal(name) {
			paths = append(paths, node.Registration(c.stage.Machine.Dir(name), roles.Name))
		}
	}
	for _, path := range paths {
		if err := node.CheckSocket(path); err != nil {
			return err
		}
	}
	return nil
}

// awaitKubelets waits until the real kubelets have told the API server of the driver.
func (c *Cast) awaitKubelets(ctx context.Context, roles Roles) error {
	for name := range roles.Topology {
		if !c.isReal(name) {
			continue
		}
		err := wait.PollUntilContextTimeout(ctx, podPoll, podPatience, true, func(ctx context.Context) (bool, error) {
			object, err := c.stage.Kube.StorageV1().CSINodes().Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, client(err)
			}
			return slices.ContainsFunc(object.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == c.Info.Name }), nil
		})
		if err != nil {
			return fmt.Errorf("waiting until the kubelet of %s has registered %s: %w", name, c.Info.Name, err)
		}
	}
	return nil
}

// client lets a poll go on where an object is not there yet.
func client(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// runReal waits until a real kubelet runs the pod.
func (k *Kubelet) runReal(ctx context.Context, pod *corev1.Pod) (map[string]Folder, error) {
	pod, err := k.awaitPod(ctx, pod)
	if err != nil {
		return nil, err
	}
	folders := map[string]Folder{}
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim == nil {
			continue
		}
		pv, err := k.volumeOf(ctx, pod.Namespace, volume.PersistentVolumeClaim.ClaimName)
		if err != nil {
			return nil, fmt.Errorf("running pod %s: %w", pod.Name, err)
		}
		if pv.Spec.CSI == nil || pv.Spec.CSI.Driver != k.cast.Info.Name {
			continue
		}
		for _, m := range pod.Spec.Containers[0].VolumeMounts {
			if m.Name == volume.Name {
				folder := inside{machine: k.cast.stage.Machine, pod: pod, dir: m.MountPath}
				folders[volume.Name] = folder
				k.mu.Lock()
				k.real[pod.UID] = folder
				k.mu.Unlock()
			}
		}
	}
	return folders, nil
}

func (k *Kubelet) awaitPod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	name, why := pod.Name, "nothing has been said"
	err := wait.PollUntilContextTimeout(ctx, podPoll, podPatience, true, func(ctx context.Context) (bool, error) {
		found, err := k.cast.stage.Kube.CoreV1().Pods(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		pod = found
		for _, s := range pod.Status.ContainerStatuses {
			if s.State.Waiting != nil {
				why = s.State.Waiting.Reason + " " + s.State.Waiting.Message
			}
			if s.State.Terminated != nil {
				why = s.State.Terminated.Reason + " " + s.State.Terminated.Message
			}
		}
		isUp := len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Running != nil
		return pod.Status.Phase == corev1.PodRunning && isUp, nil
	})
	if err != nil {
		return nil, fmt.Errorf("waiting until the kubelet of %s runs pod %s: %w: it is %s: %s%s", pod.Spec.NodeName, name, err, pod.Status.Phase, why, k.warnings(ctx, pod))
	}
	return pod, nil
}

// warnings are what has been told about a pod that does not run.
func (k *Kubelet) warnings(ctx context.Context, pod *corev1.Pod) string {
	events, err := k.cast.stage.Kube.CoreV1().Events(pod.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(pod.UID)})
	if err != nil {
		return ""
	}
	var said []string
	for _, e := range events.Items {
		if e.Type == corev1.EventTypeWarning {
			said = append(said, "; "+e.Reason+": "+e.Message)
		}
	}
	return strings.Join(said, "")
}

// endReal deletes a pod and waits until its kubelet has taken it down.
func (k *Kubelet) endReal(ctx context.Context, pod *corev1.Pod) error {
	pods := k.cast.stage.Kube.CoreV1().Pods(pod.Namespace)
	err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(1)), Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	if err == nil {
		err = wait.PollUntilContextTimeout(ctx, podPoll, podPatience, true, func(ctx context.Context) (bool, error) {
			found, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return true, nil
			}
			return err == nil && found.UID != pod.UID, err
		})
	}
	k.mu.Lock()
	delete(k.real, pod.UID)
	k.mu.Unlock()
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("ending pod %s: %w", pod.Name, err)
	}
	return nil
}

// inside is a volume as the first container of a real pod has it: what is done to it is done in there.
type inside struct {
	machine *node.Machine
	pod     *corev1.Pod
	dir     string
}

func (f inside) run(script, name, content string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	out, err := f.machine.Exec(ctx, f.pod, "sh", "-c", script, "sh", f.dir+"/"+name, content)
	if err != nil && strings.Contains(err.Error(), "No such file or directory") {
		err = errors.Join(err, os.ErrNotExist)
	}
	return out, err
}

func (f inside) Write(name, content string) error {
	if _, err := f.run(`printf %s "$2" > "$1" && sync`, name, content); err != nil {
		return fmt.Errorf("writing into the volume: %w", err)
	}
	return nil
}

func (f inside) Read(name string) (string, error) {
	content, err := f.run(`cat "$1"`, name, "")
	if err != nil {
		return "", fmt.Errorf("reading from the volume: %w", err)
	}
	return content, nil
}

func (f inside) Destroy(name string) error {
	if _, err := f.run(`rm "$1"`, name, ""); err != nil {
		return fmt.Errorf("destroying a file of the volume: %w", err)
	}
	return nil
}
