// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/test/stage"
)

// TestMigratedLife (T77, T78, B073): a claim of a plugin that Kubernetes no longer has. The whole control plane hands it to the
// driver that replaces the plugin; the volume is stored as the plugin's, and deleted by the driver's handle. One of a plugin
// that another driver replaces is left alone.
func TestMigratedLife(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{withoutSnapshotter: true, withoutTopology: true})
	const driver, plugin = "ebs.csi.aws.com", "kubernetes.io/aws-ebs"
	cast, err := w.stage.NewCast(w.ctx, stage.Roles{Name: driver})
	w.mustNot(err)
	t.Cleanup(func() {
		if err := cast.Close(); err != nil {
			t.Error(err)
		}
	})
	address := freeAddress(t)
	_, err = cast.StartSidecar(stage.Provisioner, "--http-endpoint="+address)
	w.mustNot(err)

	class := w.class("plugin", func(c *storagev1.StorageClass) {
		c.Provisioner = plugin
		c.Parameters = map[string]string{"type": "gp2", "fsType": "ext4"}
	})
	w.claim("foreign", w.class("foreign", func(c *storagev1.StorageClass) { c.Provisioner = "kubernetes.io/gce-pd" }))
	w.claim("data", class)
	pv := w.bound("data")
	stored, err := cast.Control.Inventory(w.ctx)
	w.mustNot(err)
	if len(stored.Volumes) != 1 || stored.Volumes[0].Parameters["type"] != "gp2" || stored.Volumes[0].Parameters["fsType"] != "" {
		t.Fatalf("the driver stores %s", text(stored.Volumes))
	}
	source := pv.Spec.AWSElasticBlockStore
	if source == nil || source.VolumeID != stored.Volumes[0].ID || source.FSType != "ext4" || pv.Annotations["pv.kubernetes.io/provisioned-by"] != plugin {
		t.Fatalf("stored as %s", text(pv))
	}
	w.await("the cluster says who has the volume now", func() (bool, string) {
		got, err := w.kube.CoreV1().PersistentVolumes().Get(w.ctx, pv.Name, metav1.GetOptions{})
		if err != nil {
			return unreadable(err)
		}
		return got.Annotations["pv.kubernetes.io/migrated-to"] == driver, text(got.Annotations)
	})
	w.deleteClaim("data")
	w.volumeGone(pv.Name)
	if stored, err = cast.Control.Inventory(w.ctx); err != nil || len(stored.Volumes) != 0 {
		t.Errorf("the driver still stores %s, error %v", text(stored.Volumes), err)
	}
	if got, err := w.readClaim("foreign"); err != nil || got.Status.Phase != corev1.ClaimPending || ptr.Deref(got.Spec.StorageClassName, "") == "" {
		t.Errorf("the claim of another plugin: %s, error %v", text(got), err)
	}
	if said := w.messages("foreign"); strings.Contains(strings.Join(said, "\n"), "ProvisioningFailed") {
		t.Errorf("somebody has tried it: %q", said)
	}
	metrics := w.scrape(address)
	for _, method := range []string{"CreateVolume", "DeleteVolume"} {
		if got := metrics.count("csi_sidecar_operations_seconds", map[string]string{
			"driver_name": driver, "method_name": "/csi.v1.Controller/" + method, "grpc_status_code": "OK", "migrated": "true",
		}); got != 1 {
			t.Errorf("%s was counted %v times as migrated", method, got)
		}
	}
}
