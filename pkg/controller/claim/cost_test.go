// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestWritesPerVolume (PP-9): a volume costs one write, a restore one more for the protection of its snapshot, and an event each.
// Catches one that writes the claim, or tells of every beginning.
func TestWritesPerVolume(t *testing.T) {
	for name, row := range map[string]struct {
		world func(*testing.T) *kit.Harness
		want  []string
	}{
		"an empty volume": {func(t *testing.T) *kit.Harness { return world(t, kit.Claim("data")) }, []string{"create persistentvolumes"}},
		"a restore":       {restoring, []string{"patch volumesnapshots", "create persistentvolumes"}},
	} {
		h := row.world(t)
		start(h)
		h.Settle()
		var writes []string
		for _, request := range h.API.Requests() {
			if request.Verb != "get" && request.Verb != "list" {
				writes = append(writes, request.Verb+" "+request.Resource)
			}
		}
		if d := cmp.Diff(row.want, writes); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if events := h.Recorder.Events(); len(events) != 1 || !strings.Contains(events[0], "ProvisioningSucceeded") {
			t.Errorf("%s: events %q", name, events)
		}
	}
}

// TestWhatIsLeftAloneCountsNowhere (W28): claims that wait for a consumer or a populator, or have their volume already, are neither
// failures nor successes. Catches one that counts whatever it did not provision.
func TestWhatIsLeftAloneCountsNowhere(t *testing.T) {
	registry := prometheus.NewRegistry()
	populated := kit.Claim("populated", func(c *corev1.PersistentVolumeClaim) {
		c.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: kit.Ptr("x"), Kind: "MyPopulator", Name: "p"}
	})
	late := kit.Claim("late", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = kit.Ptr("late") })
	h := world(t, populated, late, kit.Class("late", kit.WaitForConsumer), kit.Claim("data"), kit.Volume(name, kit.ClaimedBy(kit.Claim("data"))))
	start(h, func(_ *claim.Options, d *claim.Deps) { d.Registry = registry })
	h.Settle()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if strings.HasPrefix(family.GetName(), "controller_") && len(family.GetMetric()) > 0 {
			t.Errorf("counted: %v", family)
		}
	}
	if len(families) == 0 || len(h.Driver.Calls("CreateVolume")) != 0 {
		t.Error("nothing was looked at, or something was made", families)
	}
}
