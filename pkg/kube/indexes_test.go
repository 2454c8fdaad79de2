// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// found is where an object can be found: the values of each index that has any.
func found[T kube.Object](obj T, indexes map[string]kube.Index[T]) map[string][]string {
	values := map[string][]string{}
	for name, index := range indexes {
		if v := index(obj); len(v) > 0 {
			values[name] = v
		}
	}
	return values
}

func TestClaimIndexes(t *testing.T) {
	elsewhere := func(c *corev1.PersistentVolumeClaim) { c.Spec.DataSourceRef.Namespace = kit.Ptr("other") }
	for name, row := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		want  map[string][]string
	}{
		"plain": {kit.Claim("data"), map[string][]string{kube.ByStorageClass: {"fast"}}},
		"bound": {kit.Claim("data", kit.BoundTo("pv")), map[string][]string{
			kube.ByStorageClass: {"fast"}, kube.ByVolume: {"pv"},
		}},
		"restore, named by both fields": {kit.Claim("data", kit.FromSnapshot("s")), map[string][]string{
			kube.ByStorageClass: {"fast"}, kube.BySnapshotSource: {"default/s"},
		}},
		"clone": {kit.Claim("data", kit.FromClaim("c")), map[string][]string{
			kube.ByStorageClass: {"fast"}, kube.ByClaimSource: {"default/c"},
		}},
		"fields that disagree count both": {kit.Claim("data", kit.FromSnapshot("s"), elsewhere), map[string][]string{
			kube.ByStorageClass: {"fast"}, kube.BySnapshotSource: {"default/s", "other/s"}, kube.ByForeignSource: {"other"},
		}},
		"class in the old annotation": {
			kit.With(kit.Claim("data"), kit.Annotation(wellknown.AnnBetaStorageClass, "old")),
			map[string][]string{kube.ByStorageClass: {"old"}},
		},
		"no class": {kit.Claim("data", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = nil }), map[string][]string{}},
	} {
		if diff := cmp.Diff(row.want, found(row.claim, kube.ClaimIndexes())); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestVolumeAndAttachmentIndexes(t *testing.T) {
	volume := kit.Volume("pv", kit.ClaimedBy(kit.Claim("data")))
	want := map[string][]string{kube.ByHandle: {kube.HandleKey(kit.DriverName, "handle-of-pv")}}
	if diff := cmp.Diff(want, found(volume, kube.VolumeIndexes())); diff != "" {
		t.Error(diff)
	}
	foreign := kit.Volume("pv", func(v *corev1.PersistentVolume) { v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{} })
	if got := found(foreign, kube.VolumeIndexes()); len(got) != 0 {
		t.Errorf("a volume without CSI and claim is found under %v", got)
	}
	old := kit.Volume("old", func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "aws://zone/vol-1"}}
	})
	kube.TrimVolume(kit.DriverName)(old)
	if diff := cmp.Diff(map[string][]string{kube.ByInTree: {"vol-1"}}, found(old, kube.VolumeIndexes())); diff != "" {
		t.Error(diff)
	}
	attachment := kit.Attachment("a", "pv", "node")
	if diff := cmp.Diff(map[string][]string{kube.ByVolume: {"pv"}}, found(attachment, kube.AttachmentIndexes())); diff != "" {
		t.Error(diff)
	}
	attachment.Spec.Source.PersistentVolumeName = nil
	if got := found(attachment, kube.AttachmentIndexes()); len(got) != 0 {
		t.Errorf("an inline attachment is found under %v", got)
	}
}

func TestSnapshotIndexes(t *testing.T) {
	made := wellknown.ContentName(string(kit.Snapshot("s", "data").UID))
	for name, row := range map[string]struct {
		snapshot *snapv1.VolumeSnapshot
		want     map[string][]string
	}{
		"new": {kit.Snapshot("s", "data"), map[string][]string{kube.ByClaim: {"default/data"}, kube.BySnapshotClass: {"snap"}, kube.ByContent: {made}}},
		"bound": {kit.Snapshot("s", "data", kit.BoundContent("c")), map[string][]string{
			kube.ByClaim: {"default/data"}, kube.BySnapshotClass: {"snap"}, kube.ByContent: {"c", made},
		}},
		"of a content, waits for no class": {kit.Snapshot("s", "", kit.FromContent("c")), map[string][]string{
			kube.BySnapshotClass: {""}, kube.ByContent: {"c"},
		}},
		"of one content, bound to it": {kit.Snapshot("s", "", kit.FromContent("c"), kit.BoundContent("c")), map[string][]string{
			kube.BySnapshotClass: {""}, kube.ByContent: {"c"},
		}},
		"of one content, bound to another": {kit.Snapshot("s", "", kit.FromContent("c"), kit.BoundContent("d")), map[string][]string{
			kube.BySnapshotClass: {""}, kube.ByContent: {"c", "d"},
		}},
	} {
		if diff := cmp.Diff(row.want, found(row.snapshot, kube.SnapshotIndexes())); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
