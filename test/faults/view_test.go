// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
)

// view is all that there is of a crew, in the API and at its driver.
type view struct {
	claims    []corev1.PersistentVolumeClaim
	volumes   []corev1.PersistentVolume
	snapshots []snapv1.VolumeSnapshot
	contents  []snapv1.VolumeSnapshotContent
	stored    control.Inventory
}

func (c *crew) look(ctx context.Context) (view, error) {
	var v view
	claims, err := c.kube.CoreV1().PersistentVolumeClaims(c.ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return v, err
	}
	volumes, err := c.kube.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return v, err
	}
	snapshots, err := c.snaps.VolumeSnapshots(c.ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return v, err
	}
	contents, err := c.snaps.VolumeSnapshotContents().List(ctx, metav1.ListOptions{})
	if err != nil {
		return v, err
	}
	v.claims, v.snapshots = claims.Items, snapshots.Items
	v.volumes = slices.DeleteFunc(volumes.Items, func(p corev1.PersistentVolume) bool {
		return p.Spec.CSI == nil || p.Spec.CSI.Driver != c.driver
	})
	v.contents = slices.DeleteFunc(contents.Items, func(t snapv1.VolumeSnapshotContent) bool { return t.Spec.Driver != c.driver })
	v.stored, err = c.script.Inventory(ctx)
	return v, err
}

// orphans are what the driver stores and no object names (A1, A2).
func (v view) orphans() []string {
	named := map[string]bool{}
	for _, p := range v.volumes {
		named[p.Spec.CSI.VolumeHandle] = true
	}
	for _, t := range v.contents {
		named[handleOf(&t)] = true
	}
	var found []string
	for _, s := range v.stored.Volumes {
		if !named[s.ID] {
			found = append(found, "nobody knows of volume "+s.Name)
		}
	}
	replacements := v.replacements()
	for _, s := range v.stored.Snapshots {
		if !named[s.ID] && !replacements[s.Name] {
			found = append(found, "nobody knows of snapshot "+s.Name)
		}
	}
	return found
}

// replacements are the names under which a snapshot may be that the driver has taken in place of one that it lost, when it was asked by the name and the
// answer was lost: it goes with the content that the name is for, and has to be gone when that is.
func (v view) replacements() map[string]bool {
	stored := map[string]bool{}
	for _, s := range v.stored.Snapshots {
		stored[s.ID] = true
	}
	names := map[string]bool{}
	for _, t := range v.contents {
		if handle := handleOf(&t); handle != "" && !stored[handle] {
			names["snapshot-"+strings.TrimPrefix(t.Name, "snapcontent-")] = true
		}
	}
	return names
}

func handleOf(content *snapv1.VolumeSnapshotContent) string {
	if content.Status != nil && content.Status.SnapshotHandle != nil {
		return *content.Status.SnapshotHandle
	}
	return ptr.Deref(content.Spec.Source.SnapshotHandle, "")
}

// leaving are objects that are to go and are still there (A3), with what holds them, by the name of the claim or the snapshot
// that they belong to.
func (v view) leaving() []unfinished {
	var found []unfinished
	note := func(name, kind string, o metav1.ObjectMeta) {
		if o.DeletionTimestamp != nil {
			found = append(found, unfinished{name, fmt.Sprintf("%s %s of %s is Terminating, held by %q", kind, o.Name, name, o.Finalizers)})
		}
	}
	for _, o := range v.claims {
		note(o.Name, "claim", o.ObjectMeta)
	}
	for _, o := range v.volumes {
		name := ""
		if o.Spec.ClaimRef != nil {
			name = o.Spec.ClaimRef.Name
		}
		note(name, "volume", o.ObjectMeta)
		if o.Status.Phase == corev1.VolumeReleased && o.DeletionTimestamp == nil {
			found = append(found, unfinished{name, fmt.Sprintf("volume %s of %s is Released and nobody deletes it", o.Name, name)})
		}
	}
	for _, o := range v.snapshots {
		note(o.Name, "snapshot", o.ObjectMeta)
	}
	for _, o := range v.contents {
		note(o.Spec.VolumeSnapshotRef.Name, "content", o.ObjectMeta)
	}
	return found
}

// unfinished is an object that is not yet what it is to become.
type unfinished struct {
	// name is that of the claim or the snapshot that it belongs to.
	name string
	what string
}

func (v view) unfinished() []unfinished {
	var found []unfinished
	note := func(name, format string, args ...any) {
		found = append(found, unfinished{name, fmt.Sprintf(format, args...)})
	}
	for _, o := range v.claims {
		if o.Status.Phase != corev1.ClaimBound && o.DeletionTimestamp == nil {
			note(o.Name, "claim %s is %s", o.Name, o.Status.Phase)
		}
	}
	for _, o := range v.volumes {
		if o.Status.Phase != corev1.VolumeBound && o.Spec.ClaimRef != nil {
			note(o.Spec.ClaimRef.Name, "volume %s of %s is %s", o.Name, o.Spec.ClaimRef.Name, o.Status.Phase)
		}
	}
	for _, o := range v.snapshots {
		if o.DeletionTimestamp == nil && !isReady(&o) {
			note(o.Name, "snapshot %s is not ready", o.Name)
		}
	}
	for _, o := range v.contents {
		if o.DeletionTimestamp == nil && (o.Status == nil || !ptr.Deref(o.Status.ReadyToUse, false)) {
			note(o.Spec.VolumeSnapshotRef.Name, "content %s of %s is not ready", o.Name, o.Spec.VolumeSnapshotRef.Name)
		}
	}
	return found
}

func isReady(s *snapv1.VolumeSnapshot) bool {
	return s.Status != nil && ptr.Deref(s.Status.ReadyToUse, false) && s.Status.BoundVolumeSnapshotContentName != nil
}

// faults are all that keeps a view from being calm.
func (v view) faults() []string {
	all := v.orphans()
	for _, u := range slices.Concat(v.leaving(), v.unfinished()) {
		all = append(all, u.what)
	}
	return all
}

// left are all objects, by kind and name, and what the driver stores.
func (v view) left() []string {
	var found []string
	note := func(kind string, o metav1.ObjectMeta) {
		found = append(found, fmt.Sprintf("%s %s held by %q", kind, o.Name, o.Finalizers))
	}
	for _, o := range v.claims {
		note("claim", o.ObjectMeta)
	}
	for _, o := range v.volumes {
		note(fmt.Sprintf("%s volume", o.Status.Phase), o.ObjectMeta)
	}
	for _, o := range v.snapshots {
		note("snapshot", o.ObjectMeta)
	}
	for _, o := range v.contents {
		note("content", o.ObjectMeta)
	}
	for _, s := range v.stored.Volumes {
		found = append(found, "at the driver: volume "+s.Name)
	}
	for _, s := range v.stored.Snapshots {
		found = append(found, "at the driver: snapshot "+s.Name)
	}
	return found
}
