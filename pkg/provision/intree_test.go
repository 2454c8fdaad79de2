// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestIsOfHandle: a volume that is stored in the form from before its driver is known by the handle that the driver gives, also where that
// form keeps less than the handle says. Catches one that compares handles alone, and takes two forms of one volume for two.
func TestIsOfHandle(t *testing.T) {
	zone := map[string]string{corev1.LabelTopologyZone: "us-central1-a"}
	for driver, row := range map[string]struct {
		labels        map[string]string
		source        corev1.PersistentVolumeSource
		handle, other string
	}{
		ebs: {nil, corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "aws://us-east-1a/vol-1"}}, "vol-1", "vol-2"},
		gce: {zone, corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "disk"}},
			"projects/p/zones/us-central1-a/disks/disk", "projects/p/zones/us-central1-a/disks/other"},
		"cinder.csi.openstack.org": {nil, corev1.PersistentVolumeSource{Cinder: &corev1.CinderPersistentVolumeSource{VolumeID: "c-1"}}, "c-1", "c-2"},
		"disk.csi.azure.com": {nil, corev1.PersistentVolumeSource{AzureDisk: &corev1.AzureDiskVolumeSource{DiskName: "d", DataDiskURI: "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d"}},
			"/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d", "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/e"},
		"file.csi.azure.com": {nil, corev1.PersistentVolumeSource{AzureFile: &corev1.AzureFilePersistentVolumeSource{SecretName: "azure-storage-account-acc-secret", ShareName: "share"}},
			"#acc#share###default", "#another#share###default"},
		"csi.vsphere.vmware.com": {nil, corev1.PersistentVolumeSource{VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{VolumePath: "[ds] kubevols/a.vmdk"}}, "[ds] kubevols/a.vmdk", "an-id"},
		"pxd.portworx.com":       {nil, corev1.PersistentVolumeSource{PortworxVolume: &corev1.PortworxVolumeSource{VolumeID: "px-1"}}, "px-1", "px-2"},
	} {
		t.Run(driver, func(t *testing.T) {
			volume := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
				PersistentVolumeSource: row.source, ClaimRef: &corev1.ObjectReference{Namespace: "default", Name: "data", UID: uid},
			}}
			volume.Labels = row.labels
			c := translating(driver)
			for handle, want := range map[string]bool{row.handle: true, row.other: false, "": false, "#": false} {
				if got, err := c.IsOfHandle(volume, handle); got != want || err != nil {
					translated, _ := c.AsCSI(volume)
					t.Errorf("%q: %v, %v; want %v (%+v)", handle, got, err, want, translated.Spec.CSI)
				}
			}
			if got, err := translating("hostpath.csi.k8s.io").IsOfHandle(volume, row.handle); got || err != nil {
				t.Error("it counts as a volume of any driver", got, err)
			}
		})
	}
	broken := released(inTree, func(in *VolumeInput) { in.Volume.Spec.AWSElasticBlockStore.VolumeID = "aws://x/y/z" }).Volume
	if _, err := translating(ebs).IsOfHandle(broken, "vol-1"); err == nil {
		t.Error("a volume that cannot be translated counts as another")
	}
}
