// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

func TestKeysOfClaim(t *testing.T) {
	h := world(t, kit.Claim("open"))
	h.Driver.Next("CreateVolume", kit.Reply{Code: codes.DeadlineExceeded, Times: 99})
	c := start(h)
	h.Horizon = 0
	h.Settle()
	foreign := kit.With(kit.Claim("data"), kit.Annotation(wellknown.AnnStorageProvisioner, "other"))
	terminating := kit.With(kit.Claim("data"), kit.Deleted)
	for _, row := range []struct {
		name   string
		change kube.Change[*corev1.PersistentVolumeClaim]
		want   int
	}{
		{"new and ours", kube.Change[*corev1.PersistentVolumeClaim]{New: kit.Claim("data")}, 1},
		{"terminating", kube.Change[*corev1.PersistentVolumeClaim]{Old: kit.Claim("data"), New: terminating}, 1},
		{"P-4 of another driver", kube.Change[*corev1.PersistentVolumeClaim]{New: foreign}, 0},
		{"P-4 bound", kube.Change[*corev1.PersistentVolumeClaim]{New: kit.Claim("data", kit.BoundTo("v"))}, 0},
		{"bound, but an attempt is open", kube.Change[*corev1.PersistentVolumeClaim]{New: kit.Claim("open", kit.BoundTo("v"))}, 1},
		{"gone", kube.Change[*corev1.PersistentVolumeClaim]{Old: kit.Claim("data"), Deleted: true}, 0},
		{"gone, but an attempt is open", kube.Change[*corev1.PersistentVolumeClaim]{Old: kit.Claim("open"), Deleted: true}, 1},
		{"replaced between two looks", kube.Change[*corev1.PersistentVolumeClaim]{Old: kit.Claim("open"), New: kit.With(kit.Claim("open"), func(o metav1.Object) { o.SetUID("second") })}, 2},
	} {
		if got := c.KeysOfClaim(row.change); len(got) != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}

func TestKeysOfClass(t *testing.T) {
	h := world(t, kit.Claim("waits"), kit.Claim("bound", kit.BoundTo("v")), kit.Claim("other", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = kit.Ptr("slow") }))
	c := start(h)
	class := kit.Class(kit.ClassName)
	if got := c.KeysOfClass(kube.Change[*storagev1.StorageClass]{New: class}); len(got) != 1 || got[0].Name != "waits" {
		t.Error(got)
	}
	if got := c.KeysOfClass(kube.Change[*storagev1.StorageClass]{Old: class, New: class}); got != nil {
		t.Error("B027: a resync wakes claims", got)
	}
	if got := c.KeysOfClass(kube.Change[*storagev1.StorageClass]{Old: class, Deleted: true}); got != nil {
		t.Error(got)
	}
}

func TestMetrics(t *testing.T) {
	h := world(t, kit.Claim("data"))
	registry := prometheus.NewRegistry()
	h.Driver.Next("CreateVolume", kit.Reply{Code: codes.NotFound}, kit.Reply{Code: codes.NotFound})
	start(h, func(_ *claim.Options, d *claim.Deps) { d.Registry = registry })
	h.Settle()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			count := m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			got = append(got, family.GetName()+" "+strings.Join(labels, ",")+" "+string(rune('0'+int(count))))
		}
	}
	want := []string{
		"controller_persistentvolumeclaim_provision_duration_seconds class=fast,source= 1",
		"controller_persistentvolumeclaim_provision_failed_total class=fast,source= 2",
		"controller_persistentvolumeclaim_provision_total class=fast,source= 1",
		"csi_tandem_open_attempts  0",
		"csi_tandem_volumes_outcome_unknown_total  0",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error("T106", d)
	}
}

func TestNothingIsRememberedOfSettledClaims(t *testing.T) {
	h := world(t, kit.Claim("data"))
	h.Driver.Next("CreateVolume", kit.Reply{Code: codes.InvalidArgument, Times: 99})
	c := start(h)
	h.Horizon = 0
	h.Settle()
	bound := kube.Change[*corev1.PersistentVolumeClaim]{New: kit.Claim("data", kit.BoundTo("v"))}
	if len(c.KeysOfClaim(bound)) != 1 {
		t.Fatal("the refusal was not remembered")
	}
	kit.Edit(h.API, dataKey, kit.BoundTo("v"))
	h.Settle()
	if got := c.KeysOfClaim(bound); len(got) != 0 {
		t.Error("W2: still remembered", got)
	}
}
