// SPDX-License-Identifier: Apache-2.0

package volume_test

import (
	"strings"
	"testing"
	"time"

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

// TestTwinFromBeforeMigration: a volume has two PersistentVolumes, one of them in the form from before its driver and bound; the other is
// let go. Catches a search for others that knows the driver's form only, and destroys the data of the bound one.
func TestTwinFromBeforeMigration(t *testing.T) {
	const ebs, plain = "ebs.csi.aws.com", "kubernetes.io/aws-ebs"
	for name, annotations := range map[string]map[string]string{
		"migrated to us":             {wellknown.AnnProvisionedBy: plain, wellknown.AnnMigratedTo: ebs},
		"by hand, which nobody says": nil,
	} {
		for _, id := range []string{"handle-of-v", "aws://us-east-1a/vol-1"} {
			t.Run(name+", as "+id, func(t *testing.T) {
				h := world(t, released())
				h.Stores.Driver = ebs
				kit.Edit(h.API, key, func(v *corev1.PersistentVolume) {
					v.Spec.CSI.Driver, v.Spec.CSI.VolumeHandle = ebs, id[strings.LastIndex(id, "/")+1:]
					kube.SetAnnotation(v, wellknown.AnnProvisionedBy, ebs)
				})
				h.Put(kit.Claim("other", kit.BoundTo("w")), kit.Volume("w", kit.ClaimedBy(kit.Claim("other")), func(v *corev1.PersistentVolume) {
					v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: id}}
					v.Annotations = annotations
				}))
				startAs(h, ebs)
				h.Horizon = time.Hour
				h.Settle()
				if calls := h.Driver.Calls("DeleteVolume"); len(calls) != 0 || !strings.Contains(strings.Join(h.Log.Lines(), "\n"), "PersistentVolume w has it too") {
					t.Fatalf("%v\n%s", calls, h.Trace())
				}
				came := h.Clock.Now()
				kit.Edit(h.API, kube.Key{Name: "w"}, func(v *corev1.PersistentVolume) { v.Finalizers = nil })
				kit.Remove[*corev1.PersistentVolume](h.API, kube.Key{Name: "w"})
				h.Horizon = 0
				h.Settle()
				if calls := h.Driver.Calls("DeleteVolume"); len(calls) != 1 || !h.Clock.Now().Equal(came) {
					t.Errorf("its end wakes nobody: %v\n%s", calls, h.Trace())
				}
			})
		}
	}
}
