// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
)

// closePatience bounds the unmounting of what is left at the end.
const closePatience = 20 * time.Second

// boundPoll is how often a claim is looked at until it is bound.
const boundPoll = 100 * time.Millisecond

// Kubelet plays the kubelets of all nodes, as far as volumes go: it stages and publishes them through the driver's
// socket, tells the API server that the pod runs, and undoes all that when the pod is deleted.
type Kubelet struct {
	cast *Cast
	dir  string

	mu   sync.Mutex
	pods map[types.UID][]publication
	// real are the first volumes of pods on real nodes.
	real map[types.UID]Folder
}

// publication is one volume of one pod.
type publication struct {
	volume  string
	node    string
	staging string
	target  string
}

func newKubelet(c *Cast, dir string) *Kubelet {
	return &Kubelet{cast: c, dir: dir, pods: map[types.UID][]publication{}, real: map[types.UID]Folder{}}
}

// Run does for a scheduled pod what makes it run: its volumes appear in folders, which are returned by the names that
// the pod has for them.
func (k *Kubelet) Run(ctx context.Context, pod *corev1.Pod) (map[string]Folder, error) {
	if pod.Spec.NodeName == "" {
		return nil, fmt.Errorf("running pod %s: it has no node", pod.Name)
	}
	if k.cast.isReal(pod.Spec.NodeName) {
		return k.runReal(ctx, pod)
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
		p := k.place(pod, pv)
		if err := k.publish(ctx, p, pv); err != nil {
			return nil, fmt.Errorf("running pod %s: %w", pod.Name, err)
		}
		k.mu.Lock()
		k.pods[pod.UID] = append(k.pods[pod.UID], p)
		k.mu.Unlock()
		folders[volume.Name] = published(p.target)
	}
	return folders, k.report(ctx, pod)
}

// volumeOf waits for the claim's phase as a kubelet does: a pod can be scheduled on the claim's binding, and the
// phase is a later write of the controller that binds.
func (k *Kubelet) volumeOf(ctx context.Context, namespace, name string) (*corev1.PersistentVolume, error) {
	var claim *corev1.PersistentVolumeClaim
	err := wait.PollUntilContextTimeout(ctx, boundPoll, callTimeout, true, func(ctx context.Context) (bool, error) {
		var err error
		claim, err = k.cast.stage.Kube.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
		return err == nil && claim.Status.Phase == corev1.ClaimBound, err
	})
	if wait.Interrupted(err) {
		return nil, fmt.Errorf("claim %s is not bound: %w", name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading claim %s: %w", name, err)
	}
	pv, err := k.cast.stage.Kube.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading volume %s: %w", claim.Spec.VolumeName, err)
	}
	return pv, nil
}

func (k *Kubelet) place(pod *corev1.Pod, pv *corev1.PersistentVolume) publication {
	return publication{
		volume:  pv.Spec.CSI.VolumeHandle,
		node:    pod.Spec.NodeName,
		staging: filepath.Join(k.dir, pod.Spec.NodeName, "staging", pv.Name),
		target:  filepath.Join(k.dir, pod.Spec.NodeName, "pods", string(pod.UID), pv.Name, "mount"),
	}
}

func (k *Kubelet) publish(ctx context.Context, p publication, pv *corev1.PersistentVolume) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := os.MkdirAll(filepath.Dir(p.target), 0o750); err != nil {
		return err
	}
	capability := capabilityOf(pv)
	published, err := k.attach(ctx, p, pv)
	if err != nil {
		return err
	}
	if k.stages() {
		secrets, err := k.secrets(ctx, pv.Spec.CSI.NodeStageSecretRef)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(p.staging, 0o750); err != nil {
			return err
		}
		_, err = k.cast.endpoint.node.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
			VolumeId: p.volume, StagingTargetPath: p.staging, VolumeCapability: capability,
			VolumeContext: pv.Spec.CSI.VolumeAttributes, PublishContext: published, Secrets: secrets,
		})
		if err != nil {
			return fmt.Errorf("staging volume %s: %w", pv.Name, err)
		}
	}
	secrets, err := k.secrets(ctx, pv.Spec.CSI.NodePublishSecretRef)
	if err != nil {
		return err
	}
	request := &csi.NodePublishVolumeRequest{
		VolumeId: p.volume, TargetPath: p.target, VolumeCapability: capability,
		VolumeContext: pv.Spec.CSI.VolumeAttributes, PublishContext: published, Secrets: secrets,
	}
	if k.stages() {
		request.StagingTargetPath = p.staging
	}
	if _, err := k.cast.endpoint.node.NodePublishVolume(ctx, request); err != nil {
		return fmt.Errorf("publishing volume %s: %w", pv.Name, err)
	}
	return nil
}

// attach plays the attacher, for drivers that want one.
func (k *Kubelet) attach(ctx context.Context, p publication, pv *corev1.PersistentVolume) (map[string]string, error) {
	if !k.cast.Info.Can(csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME.String()) {
		return nil, nil
	}
	secrets, err := k.secrets(ctx, pv.Spec.CSI.ControllerPublishSecretRef)
	if err != nil {
		return nil, err
	}
	answer, err := k.cast.endpoint.controller.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{
		VolumeId: p.volume, NodeId: k.cast.Info.NodeID, VolumeCapability: capabilityOf(pv),
		VolumeContext: pv.Spec.CSI.VolumeAttributes, Secrets: secrets,
	})
	if err != nil {
		return nil, fmt.Errorf("attaching volume %s: %w", pv.Name, err)
	}
	return answer.GetPublishContext(), nil
}

func (k *Kubelet) stages() bool {
	return k.cast.Info.Can(csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME.String())
}

func (k *Kubelet) secrets(ctx context.Context, reference *corev1.SecretReference) (map[string]string, error) {
	if reference == nil {
		return nil, nil
	}
	secret, err := k.cast.stage.Kube.CoreV1().Secrets(reference.Namespace).Get(ctx, reference.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading secret %s/%s: %w", reference.Namespace, reference.Name, err)
	}
	values := map[string]string{}
	for key, value := range secret.Data {
		values[key] = string(value)
	}
	return values, nil
}

// Folder finds the first volume of a pod that runs.
func (k *Kubelet) Folder(pod *corev1.Pod) (Folder, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if folder := k.real[pod.UID]; folder != nil {
		return folder, true
	}
	if len(k.pods[pod.UID]) == 0 {
		return nil, false
	}
	return published(k.pods[pod.UID][0].target), true
}

// report writes the status that a kubelet would.
func (k *Kubelet) report(ctx context.Context, pod *corev1.Pod) error {
	status := `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`
	_, err := k.cast.stage.Kube.CoreV1().Pods(pod.Namespace).
		Patch(ctx, pod.Name, types.StrategicMergePatchType, []byte(status), metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("reporting that pod %s runs: %w", pod.Name, err)
	}
	return nil
}

// End deletes a pod, and takes its volumes from it first. One that is gone already is no error.
func (k *Kubelet) End(ctx context.Context, namespace, name string) error {
	pods := k.cast.stage.Kube.CoreV1().Pods(namespace)
	pod, err := pods.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil && k.cast.isReal(pod.Spec.NodeName) {
		return k.endReal(ctx, pod)
	}
	if err == nil {
		err = k.unpublish(ctx, pod.UID)
	}
	if err == nil {
		// No grace: nothing of the pod runs, and it is the kubelet who says when it is over.
		err = pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("ending pod %s: %w", name, err)
	}
	return nil
}

func (k *Kubelet) unpublish(ctx context.Context, pod types.UID) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.pods[pod]) > 0 {
		p := k.pods[pod][0]
		_, err := k.cast.endpoint.node.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: p.volume, TargetPath: p.target})
		if err != nil {
			return fmt.Errorf("unpublishing volume %s: %w", p.volume, err)
		}
		k.pods[pod] = slices.Delete(k.pods[pod], 0, 1)
		if err := k.unstage(ctx, p); err != nil {
			return err
		}
	}
	delete(k.pods, pod)
	return nil
}

// unstage is for the last pod of a node that had the volume.
func (k *Kubelet) unstage(ctx context.Context, p publication) error {
	for _, others := range k.pods {
		if slices.ContainsFunc(others, func(o publication) bool { return o.staging == p.staging }) {
			return nil
		}
	}
	if k.stages() {
		_, err := k.cast.endpoint.node.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: p.volume, StagingTargetPath: p.staging})
		if err != nil {
			return fmt.Errorf("unstaging volume %s: %w", p.volume, err)
		}
	}
	if k.cast.Info.Can(csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME.String()) {
		_, err := k.cast.endpoint.controller.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: p.volume, NodeId: k.cast.Info.NodeID})
		if err != nil {
			return fmt.Errorf("detaching volume %s: %w", p.volume, err)
		}
	}
	return nil
}

// close takes all volumes from all pods. It has a time of its own: it runs when all else has been given up.
func (k *Kubelet) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	k.mu.Lock()
	var left []types.UID
	for pod := range k.pods {
		left = append(left, pod)
	}
	k.mu.Unlock()
	var failures []error
	for _, pod := range left {
		failures = append(failures, k.unpublish(ctx, pod))
	}
	return errors.Join(failures...)
}
