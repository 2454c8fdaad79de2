// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Names of the phases, which budgets and files of results are by.
const (
	provisioning     = "claim → volume"
	snapshotting     = "snapshot → ready"
	restoring        = "restore → volume"
	snapshotDeletion = "snapshot deletion → gone"
	volumeDeletion   = "volume deletion → gone"
	bare             = "bare client"
)

// runPhases measures the lives of volumes and snapshots and shows what it found.
func runPhases(ctx context.Context, b *bench) error {
	result, err := b.phases(ctx)
	if err != nil {
		return err
	}
	return b.o.show(os.Stdout, result)
}

// warmUp is how many objects go through all phases before anything is measured: connections, caches and code are then as
// they are in a cluster that lives.
const warmUp = 5

// phases plays all of them, the limit first.
func (b *bench) phases(ctx context.Context) (*Result, error) {
	result := &Result{Label: b.o.label, Machine: machine(), Date: time.Now().Format(time.DateOnly), Flags: b.flags()}
	b.say("measuring what a bare client reaches")
	if _, err := b.run(ctx, b.barePhase("warmbare"), warmUp); err != nil {
		return nil, err
	}
	limit, err := b.run(ctx, b.barePhase("bare"), b.o.objects)
	if err != nil {
		return nil, err
	}
	result.Rows = append(result.Rows, limit)
	if err := b.hirePair(ctx); err != nil {
		return nil, err
	}
	for _, m := range b.crew {
		result.Programs = append(result.Programs, m.name)
	}
	b.say("warming up")
	for _, p := range b.lifePhases("warm") {
		if _, err := b.run(ctx, p, warmUp); err != nil {
			return nil, err
		}
	}
	b.driver.be(b.o.lag, 0)
	for _, p := range b.lifePhases("o") {
		b.say("measuring %s, %d objects", p.name, b.o.objects)
		p.isMeasured = true
		row, err := b.run(ctx, p, b.o.objects)
		if err != nil {
			return nil, err
		}
		result.Rows = append(result.Rows, row)
	}
	return result, nil
}

// lifePhases are a life from the claim to the end: volumes, a snapshot of each, a volume from each, and all deleted.
func (b *bench) lifePhases(prefix string) []phase {
	claims := b.stage.Kube.CoreV1().PersistentVolumeClaims(namespace)
	snapshots := b.stage.Snapshots.SnapshotV1().VolumeSnapshots(namespace)
	return []phase{
		{
			name: provisioning, prefix: prefix, ends: []moment{written}, isClaim: true, method: "CreateVolume",
			do: func(ctx context.Context, name string) error {
				_, err := claims.Create(ctx, claimOf(name, className), metav1.CreateOptions{})
				return err
			},
		},
		{
			name: snapshotting, prefix: prefix, ends: []moment{ready}, method: "CreateSnapshot",
			do: func(ctx context.Context, name string) error {
				_, err := snapshots.Create(ctx, snapshotOf(name), metav1.CreateOptions{})
				return err
			},
		},
		{
			name: restoring, prefix: prefix + "-restored", ends: []moment{written}, isClaim: true, method: "CreateVolume",
			do: func(ctx context.Context, name string) error {
				claim := claimOf(name, className)
				claim.Spec.DataSource = &corev1.TypedLocalObjectReference{
					APIGroup: ptr.To(snapv1.GroupName), Kind: "VolumeSnapshot", Name: strings.Replace(name, "-restored", "", 1),
				}
				_, err := claims.Create(ctx, claim, metav1.CreateOptions{})
				return err
			},
		},
		{
			name: snapshotDeletion, prefix: prefix, ends: []moment{unmade, contentGone}, method: "DeleteSnapshot",
			do: func(ctx context.Context, name string) error {
				return snapshots.Delete(ctx, name, metav1.DeleteOptions{})
			},
		},
		{
			name: volumeDeletion, prefix: prefix, ends: []moment{volumeGone}, method: "DeleteVolume",
			do: func(ctx context.Context, name string) error { return claims.Delete(ctx, name, metav1.DeleteOptions{}) },
		},
	}
}

// barePhase is the least that somebody must write who provisions: the volume of a claim, with no driver, no cache and no
// event. It is what the API server and the controller that binds allow on this machine.
func (b *bench) barePhase(prefix string) phase {
	return phase{
		name: bare, prefix: prefix, ends: []moment{written}, isClaim: true,
		do: func(ctx context.Context, name string) error {
			claim, err := b.stage.Kube.CoreV1().PersistentVolumeClaims(namespace).Create(ctx, claimOf(name, bareClass), metav1.CreateOptions{})
			if err != nil {
				return err
			}
			_, err = b.stage.Kube.CoreV1().PersistentVolumes().Create(ctx, volumeOf(claim, bareDriver), metav1.CreateOptions{})
			return err
		},
	}
}

var oneGi = resource.MustParse("1Gi")

func claimOf(name, class string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To(class), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: oneGi}},
		},
	}
}

func snapshotOf(claim string) *snapv1.VolumeSnapshot {
	return &snapv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: claim},
		Spec: snapv1.VolumeSnapshotSpec{
			Source:                  snapv1.VolumeSnapshotSource{PersistentVolumeClaimName: ptr.To(claim)},
			VolumeSnapshotClassName: ptr.To(snapshotClass),
		},
	}
}

// volumeOf is what a provisioner would make for a claim.
func volumeOf(claim *corev1.PersistentVolumeClaim, driver string) *corev1.PersistentVolume {
	name := "pvc-" + string(claim.UID)
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": driver}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: oneGi}, AccessModes: claim.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, StorageClassName: *claim.Spec.StorageClassName,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
				ResourceVersion: claim.ResourceVersion,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "vol-" + name}},
		},
	}
}

// flags are those that steer the programs.
func (b *bench) flags() string {
	var all []string
	for name, flags := range map[string]string{"provisioner": b.o.provisionerFlags, "snapshotter": b.o.snapshotterFlags} {
		if flags != "" {
			all = append(all, name+" "+flags)
		}
	}
	if b.o.lag > 0 {
		all = append(all, fmt.Sprintf("driver calls of %v", b.o.lag))
	}
	return strings.Join(all, "; ")
}

// machine is where this runs. The control plane and the programs share it.
func machine() string {
	return fmt.Sprintf("%d cores, %s/%s, %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
}
