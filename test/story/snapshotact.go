// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/test/stage"
)

const (
	diary    = "diary.txt"
	sequel   = "sequel.txt"
	sequelIs = "written after the snapshot was cut\n"
)

func snapshotAct() act {
	snapshots := feature("CREATE_DELETE_SNAPSHOT")
	return act{
		title: "Snapshot and restore",
		says:  "A file is written, kept in a snapshot, destroyed, and comes back in a new volume.",
		steps: []step{
			{title: "The driver, and a class for its volumes", play: showDriver},
			{title: "A claim becomes a volume", play: makeDisk},
			{title: "A pod writes a file into the volume", play: writeDiary},
			{title: "A snapshot of the claim", needs: snapshots, play: cutSnapshot},
			{title: "The file is destroyed", play: destroyDiary},
			{title: "A new claim from the snapshot: the file is back", needs: snapshots, play: restoreDiary},
			{title: "A clone, without a snapshot in between", needs: feature("CLONE_VOLUME"), play: cloneDisk},
			{title: "The snapshot is deleted, and with it what the driver stored", needs: snapshots, play: deleteSnapshot},
			{title: "Pods and claims are deleted, and with them the volumes", play: clearDisks},
		},
	}
}

func showDriver(ctx context.Context, s *Scene) error {
	info := s.Cast.Info
	s.Out.table("DRIVER VERSION TOPOLOGY SNAPSHOTS CLONES SOCKET", []string{
		info.Name, orDash(info.Version), orDash(strings.Join(info.TopologyKeys(), ",")),
		yesNo(info.Can("CREATE_DELETE_SNAPSHOT")), yesNo(info.Can("CLONE_VOLUME")), s.Cast.Socket,
	})
	names := []string{"examples/storageclass.yaml"}
	if info.Can("CREATE_DELETE_SNAPSHOT") {
		names = append(names, "examples/snapshotclass.yaml")
	}
	if err := s.apply(ctx, names...); err != nil {
		return err
	}
	class, err := s.Stage.Kube.StorageV1().StorageClasses().Get(ctx, "tandem", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the class: %w", err)
	}
	s.showClasses(class)
	s.fact("class %s of the driver: %t", class.Name, class.Provisioner == info.Name)
	return nil
}

func makeDisk(ctx context.Context, s *Scene) error {
	if err := s.apply(ctx, "examples/pvc.yaml"); err != nil {
		return err
	}
	pv, err := s.awaitBound(ctx, "disk-pvc")
	if err != nil {
		return err
	}
	if pv.Spec.CSI == nil {
		return fmt.Errorf("volume %s is not a CSI volume", pv.Name)
	}
	volumes, known, err := s.Cast.Volumes(ctx)
	if err != nil {
		return err
	}
	if known {
		err = s.check("the driver stores that volume", slices.Contains(volumes, pv.Spec.CSI.VolumeHandle), fmt.Sprintf("it has %q", volumes))
	}
	s.fact("disk-pvc bound to a volume of the driver: %t, policy %s, finalizers %v, annotations %d",
		pv.Spec.CSI.Driver == s.Cast.Info.Name, pv.Spec.PersistentVolumeReclaimPolicy, pv.Finalizers, len(pv.Annotations))
	return err
}

func writeDiary(ctx context.Context, s *Scene) error {
	if err := s.apply(ctx, "examples/pod.yaml"); err != nil {
		return err
	}
	folder, pod, err := s.awaitRunning(ctx, "disk-pod")
	if err != nil {
		return err
	}
	s.content = fmt.Sprintf("Dear diary, today I run as %s on %s.\n", pod.UID, pod.Spec.NodeName)
	if err := folder.Write(diary, s.content); err != nil {
		return err
	}
	s.Out.command("echo \"Dear diary, …\" > /data/"+diary, "in the pod")
	return s.expect(folder, diary, s.content)
}

// expect reads a file of a volume and compares it; the content "" means that there must be no such file.
func (s *Scene) expect(folder stage.Folder, name, content string) error {
	found, err := folder.Read(name)
	if content == "" {
		if err == nil {
			return fmt.Errorf("%s is there, and it should not be: %q", name, found)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		s.fact("%s: absent", name)
		s.Out.done("the volume has no "+name, 0)
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading %s at the path that the driver has published: what was written there is not in the volume: %w", name, err)
	}
	if err != nil {
		return err
	}
	s.fact("%s: as it was written: %t", name, found == content)
	return s.check("the volume has "+name+", with the content that was written: "+strings.TrimSpace(content), found == content, fmt.Sprintf("it says %q", found))
}

func cutSnapshot(ctx context.Context, s *Scene) error {
	if err := s.apply(ctx, "examples/snapshot.yaml"); err != nil {
		return err
	}
	var snapshot *snapv1.VolumeSnapshot
	err := s.await(ctx, "snapshot disk-snapshot is ready to use", func(ctx context.Context) (bool, string, error) {
		var err error
		if snapshot, err = s.snapshot(ctx, "disk-snapshot"); err != nil || snapshot.Status == nil {
			return false, "it has no status", err
		}
		why := "it is not ready"
		if snapshot.Status.Error != nil {
			why = ptr.Deref(snapshot.Status.Error.Message, why)
		}
		return ptr.Deref(snapshot.Status.ReadyToUse, false), why, nil
	}, "disk-snapshot")
	if err != nil {
		return err
	}
	content, err := s.contentOf(ctx, ptr.Deref(snapshot.Status.BoundVolumeSnapshotContentName, ""))
	if err != nil {
		return fmt.Errorf("reading the content of the snapshot: %w", err)
	}
	if content.Status == nil || content.Status.SnapshotHandle == nil {
		return fmt.Errorf("content %s has no handle", content.Name)
	}
	s.showSnapshot(snapshot, content)
	return s.checkSnapshot(ctx, snapshot, content)
}

// checkSnapshot looks at both pointers, and at what the driver says.
func (s *Scene) checkSnapshot(ctx context.Context, snapshot *snapv1.VolumeSnapshot, content *snapv1.VolumeSnapshotContent) error {
	claim, err := s.claim(ctx, "disk-pvc")
	if err != nil {
		return err
	}
	pv, err := s.volume(ctx, claim.Spec.VolumeName)
	if err != nil {
		return err
	}
	s.handle = *content.Status.SnapshotHandle
	ref := content.Spec.VolumeSnapshotRef
	err = errors.Join(
		s.check("its content points back to it", ref.UID == snapshot.UID && ref.Name == snapshot.Name && ref.Namespace == snapshot.Namespace, fmt.Sprint(ref)),
		s.check("the content names its source, the volume of disk-pvc", ptr.Deref(content.Spec.Source.VolumeHandle, "") == pv.Spec.CSI.VolumeHandle, fmt.Sprint(content.Spec.Source)),
	)
	if err != nil {
		return err
	}
	stored, known, err := s.Cast.StoredSnapshots(ctx)
	if err == nil && known {
		err = s.check("the driver stores a snapshot with that handle", slices.Contains(stored, s.handle), fmt.Sprintf("it has %q", stored))
	}
	s.fact("snapshot ready, content %s, finalizers %v, content's %v, error %t",
		content.Spec.DeletionPolicy, snapshot.Finalizers, content.Finalizers, snapshot.Status.Error != nil)
	return err
}

func destroyDiary(ctx context.Context, s *Scene) error {
	folder, err := s.again(ctx, "disk-pod")
	if err != nil {
		return err
	}
	s.Out.command("rm /data/"+diary, "in the pod")
	if err := folder.Destroy(diary); err != nil {
		return err
	}
	if err := folder.Write(sequel, sequelIs); err != nil {
		return err
	}
	return s.expect(folder, diary, "")
}

// again finds the folder of a pod that runs.
func (s *Scene) again(ctx context.Context, name string) (stage.Folder, error) {
	pod, err := s.pod(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("reading pod %s: %w", name, err)
	}
	folder, ok := s.Cast.Kubelet.Folder(pod)
	if !ok {
		return nil, fmt.Errorf("pod %s has no volume published", name)
	}
	return folder, nil
}

func restoreDiary(ctx context.Context, s *Scene) error {
	if err := s.apply(ctx, "examples/restore.yaml"); err != nil {
		return err
	}
	if _, err := s.awaitBound(ctx, "disk-restore"); err != nil {
		return err
	}
	if err := s.podFor(ctx, "restore-pod", "disk-restore"); err != nil {
		return err
	}
	folder, _, err := s.awaitRunning(ctx, "restore-pod")
	if err != nil {
		return err
	}
	return errors.Join(s.expect(folder, diary, s.content), s.expect(folder, sequel, ""))
}

func cloneDisk(ctx context.Context, s *Scene) error {
	if err := s.apply(ctx, "examples/clone.yaml"); err != nil {
		return err
	}
	if _, err := s.awaitBound(ctx, "disk-clone"); err != nil {
		return err
	}
	if err := s.podFor(ctx, "clone-pod", "disk-clone"); err != nil {
		return err
	}
	folder, _, err := s.awaitRunning(ctx, "clone-pod")
	if err != nil {
		return err
	}
	return errors.Join(s.expect(folder, sequel, sequelIs), s.expect(folder, diary, ""))
}

func deleteSnapshot(ctx context.Context, s *Scene) error {
	snapshot, err := s.snapshot(ctx, "disk-snapshot")
	if err != nil {
		return fmt.Errorf("reading the snapshot: %w", err)
	}
	if err := s.remove(ctx, "examples/snapshot.yaml"); err != nil {
		return err
	}
	if err := s.await(ctx, "snapshot disk-snapshot is gone", func(ctx context.Context) (bool, string, error) {
		_, err := s.snapshot(ctx, "disk-snapshot")
		return gone(err)
	}); err != nil {
		return err
	}
	name := "snapcontent-" + string(snapshot.UID)
	if err := s.await(ctx, "its content is gone", func(ctx context.Context) (bool, string, error) {
		_, err := s.contentOf(ctx, name)
		return gone(err)
	}); err != nil {
		return err
	}
	stored, known, err := s.Cast.StoredSnapshots(ctx)
	if err == nil && known {
		err = s.check("the driver stores it no more", !slices.Contains(stored, s.handle), fmt.Sprintf("it has %q", stored))
	}
	s.fact("snapshot gone")
	return err
}

// disks are the pods and manifests of the act. What the driver cannot make was never there to be deleted.
func (s *Scene) disks() (pods, manifests []string) {
	pods, manifests = []string{"disk-pod"}, []string{"examples/pvc.yaml"}
	for _, d := range []struct{ feature, pod, manifest string }{
		{"CREATE_DELETE_SNAPSHOT", "restore-pod", "examples/restore.yaml"}, {"CLONE_VOLUME", "clone-pod", "examples/clone.yaml"},
	} {
		if s.Cast.Info.Can(d.feature) {
			pods, manifests = append(pods, d.pod), append(manifests, d.manifest)
		}
	}
	// Those that were made from others go first.
	slices.Reverse(manifests)
	return pods, manifests
}

func clearDisks(ctx context.Context, s *Scene) error {
	pods, manifests := s.disks()
	for _, name := range pods {
		if err := s.Cast.Kubelet.End(ctx, namespace, name); err != nil {
			return err
		}
	}
	s.Out.command("kubectl delete pod "+strings.Join(pods, " "), "")
	if err := s.remove(ctx, manifests...); err != nil {
		return err
	}
	return s.awaitNothing(ctx)
}

// awaitNothing waits until neither the cluster nor the driver has anything of the story left.
func (s *Scene) awaitNothing(ctx context.Context) error {
	err := s.await(ctx, "claims and volumes are gone", func(ctx context.Context) (bool, string, error) {
		claims, err := s.Stage.Kube.CoreV1().PersistentVolumeClaims(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, "", err
		}
		volumes, err := s.Stage.Kube.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, "", err
		}
		left := 0
		for _, v := range volumes.Items {
			if v.Spec.CSI != nil && v.Spec.CSI.Driver == s.Cast.Info.Name {
				left++
			}
		}
		return left+len(claims.Items) == 0, fmt.Sprintf("%d claims and %d volumes are there", len(claims.Items), left), nil
	})
	if err != nil {
		return err
	}
	left, err := s.leftAtDriver(ctx)
	if err != nil {
		return err
	}
	s.fact("left at the driver: %d", len(left))
	return s.check("the driver stores nothing of this any more", len(left) == 0, fmt.Sprintf("there is %q", left))
}

func yesNo(holds bool) string {
	if holds {
		return "yes"
	}
	return "no"
}
