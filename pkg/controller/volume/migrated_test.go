// SPDX-License-Identifier: Apache-2.0

package volume_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestMigratedVolumes (T77, B073): a volume of the plugin that the driver replaces goes by the driver's handle; one that was
// migrated to another driver, or to none, is not touched.
func TestMigratedVolumes(t *testing.T) {
	const ebs, plain = "ebs.csi.aws.com", "kubernetes.io/aws-ebs"
	for name, c := range map[string]struct {
		to   string
		want []string
	}{
		"to us":             {ebs, []string{"driver DeleteVolume handle-of-v → OK", unprotect, drop}},
		"to another driver": {"other.example", nil},
		"to nobody":         {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			v := released()
			h := world(t, v)
			h.Stores.Driver = ebs
			kit.Edit(h.API, key, func(v *corev1.PersistentVolume) {
				v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{
					AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "handle-of-v"},
				}
				kube.SetAnnotation(v, wellknown.AnnProvisionedBy, plain)
				if c.to != "" {
					kube.SetAnnotation(v, wellknown.AnnMigratedTo, c.to)
				}
			})
			startAs(h, ebs)
			h.Settle()
			if d := cmp.Diff(c.want, h.Log.Lines()); d != "" {
				t.Error(d)
			}
		})
	}
}
