// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

const ebs, ebsPlain = "ebs.csi.aws.com", "kubernetes.io/aws-ebs"

func ofDriver(name string) func(*claim.Options, *claim.Deps) {
	return func(_ *claim.Options, d *claim.Deps) { d.DriverName = name }
}

// migrated is a claim of a plugin that the driver replaces.
func migrated(t *testing.T) *kit.Harness {
	class := kit.Class(kit.ClassName, func(c *storagev1.StorageClass) {
		c.Provisioner, c.Parameters = ebsPlain, map[string]string{"fsType": "xfs", "type": "gp2"}
	})
	h := world(t)
	h.Stores.Driver = ebs
	h.Put(class, kit.Claim("data", func(c *corev1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{wellknown.AnnStorageProvisioner: ebsPlain, wellknown.AnnMigratedTo: ebs}
	}))
	return h
}

func TestMigratedClaim(t *testing.T) {
	made := []string{"driver CreateVolume " + name + created, "create persistentvolumes " + name, provisioned + name}
	t.Run("T78 stored as the plugin's", func(t *testing.T) {
		h := migrated(t)
		start(h, ofDriver(ebs))
		h.Settle()
		want(t, h, made...)
		volume, _ := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name})
		if s := volume.Spec.AWSElasticBlockStore; s == nil || s.VolumeID != kit.VolumeHandle(name) || s.FSType != "xfs" || volume.Spec.CSI != nil ||
			volume.Annotations[wellknown.AnnProvisionedBy] != ebsPlain || requests(h)[0].Parameters["type"] != "gp2" {
			t.Errorf("stored %+v, asked %v", volume, requests(h))
		}
	})
	t.Run("T78 the answer to the write is lost", func(t *testing.T) {
		h := migrated(t)
		h.API.Lose("create", "persistentvolumes", apierrors.NewTimeoutError("slow", 1), 1)
		start(h, ofDriver(ebs))
		h.Settle()
		want(t, h, made[0], made[1]+" → Timeout", made[2])
	})
	t.Run("B073 changed while the driver works: the volume is finished, and nothing new is begun", func(t *testing.T) {
		h := migrated(t)
		h.Driver.Next("CreateVolume", kit.Reply{Done: true, Meanwhile: func() {
			kit.Edit(h.API, dataKey, func(c *corev1.PersistentVolumeClaim) { delete(c.Annotations, wellknown.AnnMigratedTo) })
		}})
		start(h, ofDriver(ebs))
		h.Settle()
		want(t, h, made...)
	})
	t.Run("T78 B073 not migrated", func(t *testing.T) {
		h := migrated(t)
		kit.Edit(h.API, dataKey, func(c *corev1.PersistentVolumeClaim) { delete(c.Annotations, wellknown.AnnMigratedTo) })
		start(h, ofDriver(ebs))
		h.Settle()
		want(t, h, []string(nil)...)
	})
	bare := kit.Reply{Volume: func(v *csi.Volume) *csi.Volume { v.VolumeContext = map[string]string{"partition": "x"}; return v }}
	// Catches one whose translation takes the place of the volume that would be cleaned up: its handle is lost, and the
	// volume orphaned.
	t.Run("W11 what cannot be translated back is removed and made again", func(t *testing.T) {
		h := migrated(t)
		h.Driver.Next("CreateVolume", bare)
		start(h, ofDriver(ebs))
		h.Settle()
		want(t, h, append([]string{made[0], "driver DeleteVolume " + kit.VolumeHandle(name) + created,
			failed + `translating the volume back: failed to convert partition x to integer: strconv.Atoi: parsing "x": invalid syntax`}, made...)...)
		if left := h.Driver.Inventory(); len(left) != 1 {
			t.Error(left)
		}
	})
	t.Run("W11 B001 nor is anything removed that is in use in the plugin's form", func(t *testing.T) {
		h := migrated(t)
		h.Driver.Next("CreateVolume", kit.Reply{Volume: bare.Volume, Times: 99})
		h.Stores.Hold()
		h.Put(kit.Volume("by-hand", func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: kit.VolumeHandle(name)}}
		}))
		start(h, ofDriver(ebs))
		h.Horizon = 0
		h.Settle()
		if calls := h.Driver.Calls("DeleteVolume"); len(calls) != 0 {
			t.Error(calls)
		}
	})
}

// TestHandleOfAVolumeFromBefore: the driver answers with the volume of another claim, which has it in the form from before the driver.
// Catches a search for its holder that knows the driver's form only, and gives two claims one volume.
func TestHandleOfAVolumeFromBefore(t *testing.T) {
	h := migrated(t)
	h.Put(kit.Claim("other", kit.BoundTo("w")), kit.Volume("w", kit.ClaimedBy(kit.Claim("other")), func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{
			AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1", FSType: "xfs"},
		}
		v.Annotations = map[string]string{wellknown.AnnProvisionedBy: ebsPlain, wellknown.AnnMigratedTo: ebs}
	}))
	h.Driver.Next("CreateVolume", kit.Reply{Volume: func(v *csi.Volume) *csi.Volume { v.VolumeId = "vol-1"; return v }, Times: 50})
	start(h, ofDriver(ebs))
	h.Horizon = time.Minute
	h.Settle()
	if v, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name}); ok {
		t.Errorf("the claim gets volume %q, which PersistentVolume w has for another claim\n%s", v.Spec.AWSElasticBlockStore.VolumeID, h.Trace())
	}
	if said := strings.Join(h.Log.Lines(), "\n"); !strings.Contains(said, "PersistentVolume w has for another claim") {
		t.Error(said)
	}
}
