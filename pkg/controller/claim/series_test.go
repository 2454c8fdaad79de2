// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// Claims of classes that do not exist, made and deleted by somebody who may make claims. Catches a series for each name that was ever written.
func TestSeriesOfMadeUpClasses(t *testing.T) {
	h := world(t)
	registry := prometheus.NewRegistry()
	start(h, func(_ *claim.Options, d *claim.Deps) { d.Registry = registry })
	for i := range 200 {
		n := fmt.Sprint("c", i)
		h.Put(kit.Claim(n, func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &n }))
		h.Horizon = 0
		h.Settle()
		kit.Remove[*corev1.PersistentVolumeClaim](h.API, kube.Key{Namespace: kit.Namespace, Name: n})
		h.Settle()
	}
	families, _ := registry.Gather()
	for _, f := range families {
		if n := len(f.GetMetric()); n > 50 {
			t.Error(f.GetName(), "has", n, "series of claims that are gone")
		}
	}
}
