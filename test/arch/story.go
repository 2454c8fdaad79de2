// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"fmt"
	"path"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// reference is a name in one manifest that another manifest of the same folder has to bear.
type reference struct {
	from       string
	dir        string
	kind, name string
}

// Story checks that the manifests of each folder hang together: what a claim, a pod or a snapshot names is in the folder too, so
// that applying a folder is enough.
func Story(manifests []Manifest) []Finding {
	type key struct{ dir, kind, name string }
	there := map[key]bool{}
	var wanted []reference
	for _, m := range manifests {
		dir := path.Dir(m.Path)
		add := func(kind, name string) { wanted = append(wanted, reference{m.Path, dir, kind, name}) }
		switch o := m.Object.(type) {
		case *storagev1.StorageClass:
			there[key{dir, "class", o.Name}] = true
		case *snapv1.VolumeSnapshotClass:
			there[key{dir, "snapshot class", o.Name}] = true
		case *corev1.PersistentVolume:
			add("class", o.Spec.StorageClassName)
		case *corev1.PersistentVolumeClaim:
			there[key{dir, "claim", o.Name}] = true
			claimNames(o, add)
		case *snapv1.VolumeSnapshot:
			there[key{dir, "snapshot", o.Name}] = true
			snapshotNames(o, add)
		case *corev1.Pod:
			for _, v := range o.Spec.Volumes {
				if v.PersistentVolumeClaim != nil {
					add("claim", v.PersistentVolumeClaim.ClaimName)
				}
			}
		}
	}
	var found []Finding
	for _, r := range wanted {
		if !there[key{r.dir, r.kind, r.name}] {
			found = append(found, Finding{"story", r.from, fmt.Sprintf("names the %s %q, which is not in %s", r.kind, r.name, r.dir)})
		}
	}
	return found
}

func claimNames(o *corev1.PersistentVolumeClaim, add func(kind, name string)) {
	if o.Spec.StorageClassName != nil {
		add("class", *o.Spec.StorageClassName)
	}
	if source := o.Spec.DataSource; source != nil && source.Kind == "VolumeSnapshot" {
		add("snapshot", source.Name)
	} else if source != nil && source.Kind == "PersistentVolumeClaim" {
		add("claim", source.Name)
	}
}

func snapshotNames(o *snapv1.VolumeSnapshot, add func(kind, name string)) {
	if o.Spec.VolumeSnapshotClassName != nil {
		add("snapshot class", *o.Spec.VolumeSnapshotClassName)
	}
	if o.Spec.Source.PersistentVolumeClaimName != nil {
		add("claim", *o.Spec.Source.PersistentVolumeClaimName)
	}
}
