// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/test/controlplane"
)

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

// addNode makes a simulated node with the driver on it, which is a segment of its own.
func (b *bench) addNode(ctx context.Context, name string) error {
	return b.stage.Cluster.AddNode(ctx, controlplane.Node{
		Name: name, Labels: map[string]string{hostKey: name, corev1.LabelTopologyZone: "zone-" + name[len(name)-1:]},
		Drivers: []controlplane.NodeDriver{{Name: driverName, TopologyKeys: []string{hostKey}}},
	})
}

// fillNodes makes all simulated nodes.
func (b *bench) fillNodes(ctx context.Context) error {
	return b.fill(ctx, "nodes", names("node", b.o.nodes), b.addNode)
}

// silence is how long nothing may be said while many objects are made.
const silence = 15 * time.Second

// fill makes many objects and tells how fast that went.
func (b *bench) fill(ctx context.Context, what string, objects []string, do func(context.Context, string) error) error {
	if len(objects) == 0 {
		return nil
	}
	b.say("making %d %s", len(objects), what)
	began, last, made := time.Now(), time.Now(), 0
	var mu sync.Mutex
	err := b.each(ctx, objects, func(ctx context.Context, name string) error {
		err := do(ctx, name)
		mu.Lock()
		defer mu.Unlock()
		if made++; time.Since(last) > silence {
			last = time.Now()
			b.say("made %d of %d %s", made, len(objects), what)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("making %s: %w", what, err)
	}
	b.say("made %d %s, %.0f in a second", len(objects), what, float64(len(objects))/time.Since(began).Seconds())
	return nil
}

// boundVolume makes a claim and its volume as they are when all who work on them are done: the controllers that would do that
// are away while the cluster is filled, since the one that binds takes minutes for what is made here in seconds.
func (b *bench) boundVolume(ctx context.Context, name, driver, class string) error {
	claims, volumes := b.stage.Kube.CoreV1().PersistentVolumeClaims(namespace), b.stage.Kube.CoreV1().PersistentVolumes()
	claim := claimOf(name, class)
	claim.Annotations = map[string]string{
		"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes",
		"volume.beta.kubernetes.io/storage-provisioner": driver, "volume.kubernetes.io/storage-provisioner": driver,
	}
	claim.Finalizers = []string{"kubernetes.io/pvc-protection"}
	made, err := claims.Create(ctx, claim, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	volume := volumeOf(made, driver)
	volume.Finalizers = []string{"kubernetes.io/pv-protection", "external-provisioner.volume.kubernetes.io/finalizer"}
	volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: hostKey, Operator: corev1.NodeSelectorOpIn, Values: []string{nodeName(0)}}},
	}}}}
	volume.Annotations["volume.kubernetes.io/provisioner-deletion-secret-name"] = ""
	volume.Annotations["volume.kubernetes.io/provisioner-deletion-secret-namespace"] = ""
	volume.Spec.CSI.VolumeAttributes = map[string]string{"storage.kubernetes.io/csiProvisionerIdentity": "1700000000000-1-" + driver}
	if _, err := volumes.Create(ctx, volume, metav1.CreateOptions{}); err != nil {
		return err
	}
	err = merge(ctx, volumes, volume.Name, map[string]any{"status": corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound}}, "status")
	if err != nil {
		return err
	}
	// The name of the volume is of the spec and the phase of the status.
	if err := merge(ctx, claims, name, map[string]any{"spec": map[string]any{"volumeName": volume.Name}}); err != nil {
		return err
	}
	status := corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, AccessModes: claim.Spec.AccessModes, Capacity: volume.Spec.Capacity}
	return merge(ctx, claims, name, map[string]any{"status": status}, "status")
}

// readySnapshot makes a snapshot and its content as they are when it can be used.
func (b *bench) readySnapshot(ctx context.Context, claim string) error {
	snapshots, contents := b.stage.Snapshots.SnapshotV1().VolumeSnapshots(namespace), b.stage.Snapshots.SnapshotV1().VolumeSnapshotContents()
	snapshot := snapshotOf(claim)
	snapshot.Finalizers = []string{"snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection", "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection"}
	made, err := snapshots.Create(ctx, snapshot, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	name := "snapcontent-" + string(made.UID)
	content := &snapv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{"snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"}},
		Spec: snapv1.VolumeSnapshotContentSpec{
			Driver: driverName, DeletionPolicy: snapv1.VolumeSnapshotContentDelete, VolumeSnapshotClassName: ptr.To(snapshotClass),
			Source: snapv1.VolumeSnapshotContentSource{VolumeHandle: ptr.To("vol-" + claim)},
			VolumeSnapshotRef: corev1.ObjectReference{
				APIVersion: snapv1.SchemeGroupVersion.String(), Kind: "VolumeSnapshot", Namespace: namespace, Name: claim, UID: made.UID,
			},
		},
	}
	if _, err := contents.Create(ctx, content, metav1.CreateOptions{}); err != nil {
		return err
	}
	now := time.Now().Truncate(time.Second)
	contentStatus := snapv1.VolumeSnapshotContentStatus{
		SnapshotHandle: ptr.To("snap-" + claim), CreationTime: ptr.To(now.UnixNano()), RestoreSize: ptr.To(oneGi.Value()), ReadyToUse: ptr.To(true),
	}
	err = merge(ctx, contents, name, map[string]any{"status": contentStatus}, "status")
	if err != nil {
		return err
	}
	status := snapv1.VolumeSnapshotStatus{
		BoundVolumeSnapshotContentName: ptr.To(name), CreationTime: ptr.To(metav1.NewTime(now)), ReadyToUse: ptr.To(true), RestoreSize: ptr.To(oneGi.DeepCopy()),
	}
	return merge(ctx, snapshots, claim, map[string]any{"status": status}, "status")
}

// patcher is what typed clients have in common.
type patcher[T any] interface {
	Patch(ctx context.Context, name string, kind types.PatchType, body []byte, o metav1.PatchOptions, subresources ...string) (*T, error)
}

func merge[T any](ctx context.Context, objects patcher[T], name string, content any, subresources ...string) error {
	body, err := json.Marshal(content)
	if err != nil {
		return err
	}
	_, err = objects.Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{}, subresources...)
	return err
}
