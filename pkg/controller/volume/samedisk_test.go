// SPDX-License-Identifier: Apache-2.0

package volume_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestSameDiskNameInAnotherZone: two disks of one name in two zones, which the plugin allows: its PersistentVolumes tell them apart by a label. Each
// is a volume of its own, and each has to be deleted at the driver. Catches a room that takes what two handles have in common for the handle.
func TestSameDiskNameInAnotherZone(t *testing.T) {
	const gce, plain = "pd.csi.storage.gke.io", "kubernetes.io/gce-pd"
	inTree := func(zone string) func(*corev1.PersistentVolume) {
		return func(v *corev1.PersistentVolume) {
			v.Labels = map[string]string{corev1.LabelTopologyZone: zone}
			v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "data"}}
			v.Annotations = map[string]string{wellknown.AnnProvisionedBy: plain, wellknown.AnnMigratedTo: gce}
		}
	}
	h := world(t, released())
	h.Stores.Driver = gce
	kit.Edit(h.API, key, inTree("us-east1-a"))
	h.Put(twin("w", kit.ClaimedBy(kit.Claim("gone too")), kit.Released, inTree("us-east1-b"), func(v *corev1.PersistentVolume) {
		v.Finalizers = []string{wellknown.FinalizerVolume}
	}))
	startAs(h, gce)
	h.Horizon = time.Hour
	h.Settle()
	asked := strings.Join(h.Log.Lines(), "\n")
	for _, zone := range []string{"us-east1-a", "us-east1-b"} {
		if !strings.Contains(asked, "DeleteVolume projects/UNSPECIFIED/zones/"+zone+"/disks/data") {
			t.Errorf("the disk in zone %s was never deleted\n%s", zone, h.Trace())
		}
	}
}
