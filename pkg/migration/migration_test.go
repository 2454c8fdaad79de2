// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/pkg/migration"
)

// TestPairs: which driver replaces what is protocol between all components of a cluster.
func TestPairs(t *testing.T) {
	for driver, plugin := range map[string]string{
		"ebs.csi.aws.com":          "kubernetes.io/aws-ebs",
		"pd.csi.storage.gke.io":    "kubernetes.io/gce-pd",
		"cinder.csi.openstack.org": "kubernetes.io/cinder",
		"disk.csi.azure.com":       "kubernetes.io/azure-disk",
		"file.csi.azure.com":       "kubernetes.io/azure-file",
		"csi.vsphere.vmware.com":   "kubernetes.io/vsphere-volume",
		"pxd.portworx.com":         "kubernetes.io/portworx-volume",
	} {
		if translator, ok := migration.For(driver); !ok || translator.InTree() != plugin {
			t.Errorf("%s replaces %v, %v; want %s", driver, translator, ok, plugin)
		}
	}
	for _, driver := range []string{"", "hostpath.csi.k8s.io", "kubernetes.io/aws-ebs"} {
		if translator, ok := migration.For(driver); ok || translator != nil {
			t.Errorf("%q is taken for one that replaces something", driver)
		}
	}
}

func TestArgumentsStayAsTheyAre(t *testing.T) {
	translator, _ := migration.For("ebs.csi.aws.com")
	class := &storagev1.StorageClass{Provisioner: translator.InTree(), Parameters: map[string]string{"fsType": "xfs"}}
	before := class.DeepCopy()
	translated, err := translator.ToCSIClass(class)
	if err != nil || translated.Parameters["csi.storage.k8s.io/fstype"] != "xfs" || cmp.Diff(before, class) != "" {
		t.Errorf("%v, %v: %s", translated, err, cmp.Diff(before, class))
	}
	volume := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
		AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"},
	}}}
	kept := volume.DeepCopy()
	csi, err := translator.ToCSI(volume)
	if err != nil || csi.Spec.CSI.VolumeHandle != "vol-1" || cmp.Diff(kept, volume) != "" {
		t.Fatalf("%v, %v: %s", csi, err, cmp.Diff(kept, volume))
	}
	back, err := translator.ToInTree(csi)
	if err != nil || cmp.Diff(kept.Spec.AWSElasticBlockStore, back.Spec.AWSElasticBlockStore) != "" || csi.Spec.CSI == nil {
		t.Errorf("%v, %v", back, err)
	}
	if !translator.IsInTree(volume) || translator.IsInTree(csi) || translator.IsInTree(&corev1.PersistentVolume{}) {
		t.Error("forms are mixed up")
	}
	other, _ := migration.For("pd.csi.storage.gke.io")
	if other.IsInTree(volume) {
		t.Error("a volume of another plugin counts as ours")
	}
	if _, err := translator.ToInTree(volume); err == nil {
		t.Error("what is not of a driver was translated back")
	}
}
