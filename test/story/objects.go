// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/test/stage"
)

// The one namespace that the examples are in.
const namespace = metav1.NamespaceDefault

func (s *Scene) claim(ctx context.Context, name string) (*corev1.PersistentVolumeClaim, error) {
	return s.Stage.Kube.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
}

func (s *Scene) volume(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	return s.Stage.Kube.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
}

func (s *Scene) pod(ctx context.Context, name string) (*corev1.Pod, error) {
	return s.Stage.Kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
}

func (s *Scene) snapshot(ctx context.Context, name string) (*snapv1.VolumeSnapshot, error) {
	return s.Stage.Snapshots.SnapshotV1().VolumeSnapshots(namespace).Get(ctx, name, metav1.GetOptions{})
}

func (s *Scene) contentOf(ctx context.Context, name string) (*snapv1.VolumeSnapshotContent, error) {
	return s.Stage.Snapshots.SnapshotV1().VolumeSnapshotContents().Get(ctx, name, metav1.GetOptions{})
}

// awaitBound waits until a claim is bound, and shows it with its volume.
func (s *Scene) awaitBound(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	var claim *corev1.PersistentVolumeClaim
	err := s.await(ctx, fmt.Sprintf("claim %s is Bound", name), func(ctx context.Context) (bool, string, error) {
		var err error
		if claim, err = s.claim(ctx, name); err != nil {
			return false, "", err
		}
		return claim.Status.Phase == corev1.ClaimBound, "it is " + string(claim.Status.Phase), nil
	}, name)
	if err != nil {
		return nil, err
	}
	pv, err := s.volume(ctx, claim.Spec.VolumeName)
	if err != nil {
		return nil, fmt.Errorf("reading the volume of claim %s: %w", name, err)
	}
	s.showClaims(claim)
	s.showVolumes(pv)
	return pv, nil
}

// awaitRunning waits until the scheduler has found a node, and publishes the volumes there.
func (s *Scene) awaitRunning(ctx context.Context, name string) (stage.Folder, *corev1.Pod, error) {
	pod, err := s.pod(ctx, name)
	if err != nil {
		return nil, nil, fmt.Errorf("reading pod %s: %w", name, err)
	}
	var claims []string
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			claims = append(claims, v.PersistentVolumeClaim.ClaimName)
		}
	}
	err = s.await(ctx, fmt.Sprintf("pod %s has a node", name), func(ctx context.Context) (bool, string, error) {
		var err error
		if pod, err = s.pod(ctx, name); err != nil {
			return false, "", err
		}
		return pod.Spec.NodeName != "", "the scheduler says: " + schedulerSays(pod), nil
	}, claims...)
	if err != nil {
		return nil, nil, err
	}
	folders, err := s.Cast.Kubelet.Run(ctx, pod)
	if err != nil {
		return nil, nil, err
	}
	if pod, err = s.pod(ctx, name); err != nil {
		return nil, nil, fmt.Errorf("reading pod %s: %w", name, err)
	}
	s.showPods(pod)
	for _, folder := range folders {
		s.Out.done("the volume is published on "+pod.Spec.NodeName+" by "+s.calls()+s.who(), 0)
		return folder, pod, nil
	}
	return nil, pod, nil
}

// calls are those that publish a volume on a node: a driver that does not stage is not asked to.
func (s *Scene) calls() string {
	if s.Cast.Info.Can("STAGE_UNSTAGE_VOLUME") {
		return "NodeStageVolume and NodePublishVolume"
	}
	return "NodePublishVolume"
}

// who calls the driver for a pod.
func (s *Scene) who() string {
	if s.Stage.Machine != nil {
		return ", which its kubelet called"
	}
	return ""
}

func schedulerSays(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	return "nothing yet"
}

func (s *Scene) showClaims(claims ...*corev1.PersistentVolumeClaim) {
	var rows [][]string
	for _, c := range claims {
		size := c.Status.Capacity[corev1.ResourceStorage]
		rows = append(rows, []string{c.Name, string(c.Status.Phase), orDash(c.Spec.VolumeName), orDash(strings.TrimPrefix(size.String(), "0")),
			modes(c.Spec.AccessModes), ptr.Deref(c.Spec.StorageClassName, "-")})
	}
	s.Out.table("PERSISTENTVOLUMECLAIM STATUS VOLUME CAPACITY MODES STORAGECLASS", rows...)
}

func (s *Scene) showVolumes(volumes ...*corev1.PersistentVolume) {
	var rows [][]string
	for _, v := range volumes {
		handle, claim := "-", "-"
		if v.Spec.CSI != nil {
			handle = v.Spec.CSI.VolumeHandle
		}
		if v.Spec.ClaimRef != nil {
			claim = v.Spec.ClaimRef.Namespace + "/" + v.Spec.ClaimRef.Name
		}
		rows = append(rows, []string{v.Name, string(v.Status.Phase), claim, string(v.Spec.PersistentVolumeReclaimPolicy), cut(handle, 24), orDash(affinity(v))})
	}
	s.Out.table("PERSISTENTVOLUME STATUS CLAIM RECLAIM HANDLE NODEAFFINITY", rows...)
}

func (s *Scene) showPods(pods ...*corev1.Pod) {
	var rows [][]string
	for _, p := range pods {
		rows = append(rows, []string{p.Name, string(p.Status.Phase), orDash(p.Spec.NodeName)})
	}
	s.Out.table("POD STATUS NODE", rows...)
}

func (s *Scene) showClasses(classes ...*storagev1.StorageClass) {
	var rows [][]string
	for _, c := range classes {
		var allowed []string
		for _, term := range c.AllowedTopologies {
			for _, e := range term.MatchLabelExpressions {
				allowed = append(allowed, e.Key+"="+strings.Join(e.Values, "|"))
			}
		}
		rows = append(rows, []string{c.Name, c.Provisioner, string(ptr.Deref(c.ReclaimPolicy, "")), string(ptr.Deref(c.VolumeBindingMode, "")), orDash(strings.Join(allowed, " "))})
	}
	s.Out.table("STORAGECLASS PROVISIONER RECLAIM BINDING ALLOWEDTOPOLOGIES", rows...)
}

func (s *Scene) showSnapshot(v *snapv1.VolumeSnapshot, c *snapv1.VolumeSnapshotContent) {
	ready, size := "-", "-"
	if v.Status != nil {
		ready = strconv.FormatBool(ptr.Deref(v.Status.ReadyToUse, false))
		if v.Status.RestoreSize != nil {
			size = v.Status.RestoreSize.String()
		}
	}
	s.Out.table("VOLUMESNAPSHOT READY SOURCEPVC RESTORESIZE CLASS CONTENT", []string{
		v.Name, ready, ptr.Deref(v.Spec.Source.PersistentVolumeClaimName, "-"), size, ptr.Deref(v.Spec.VolumeSnapshotClassName, "-"), c.Name,
	})
	s.Out.table("VOLUMESNAPSHOTCONTENT READY POLICY SOURCE-HANDLE SNAPSHOT-HANDLE VOLUMESNAPSHOT", []string{
		cut(c.Name, 24), strconv.FormatBool(ptr.Deref(c.Status.ReadyToUse, false)), string(c.Spec.DeletionPolicy),
		cut(ptr.Deref(c.Spec.Source.VolumeHandle, "-"), 24), cut(ptr.Deref(c.Status.SnapshotHandle, "-"), 24),
		c.Spec.VolumeSnapshotRef.Namespace + "/" + c.Spec.VolumeSnapshotRef.Name,
	})
}

// affinity writes the terms of a volume's node affinity.
func affinity(v *corev1.PersistentVolume) string {
	if v.Spec.NodeAffinity == nil || v.Spec.NodeAffinity.Required == nil {
		return ""
	}
	var terms []string
	for _, term := range v.Spec.NodeAffinity.Required.NodeSelectorTerms {
		var pairs []string
		for _, e := range term.MatchExpressions {
			pairs = append(pairs, e.Key+"="+strings.Join(e.Values, "|"))
		}
		terms = append(terms, strings.Join(pairs, ","))
	}
	return strings.Join(terms, " or ")
}

func modes(all []corev1.PersistentVolumeAccessMode) string {
	short := map[corev1.PersistentVolumeAccessMode]string{
		corev1.ReadWriteOnce: "RWO", corev1.ReadOnlyMany: "ROX", corev1.ReadWriteMany: "RWX", corev1.ReadWriteOncePod: "RWOP",
	}
	var names []string
	for _, mode := range all {
		names = append(names, short[mode])
	}
	return strings.Join(names, ",")
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
