// SPDX-License-Identifier: Apache-2.0

package storagecapacity

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestCrash: wherever the program ends, the same objects are there in the end, each once. The answer to a
// create that is lost leaves two, of which one goes.
func TestCrash(t *testing.T) {
	for _, lag := range []int{0, 3} {
		kit.Crash(t, kit.Scenario{
			Lag: lag,
			World: func(h *kit.Harness) {
				h.Horizon = 20 * time.Second
				h.Put(late("fast"), late("slow", "pool=slow"))
				for _, node := range []string{"n1", "n2"} {
					h.Put(kit.Node(node, map[string]string{"zone": node}), kit.CSINode(node, "zone"))
				}
			},
			Program: func(h *kit.Harness) { start(h) },
			Users: []func(h *kit.Harness){
				func(h *kit.Harness) { holding(h, nil); h.Clock.Step(2 * time.Minute) },
				func(h *kit.Harness) {
					kit.Edit(h.API, kube.Key{Name: "n2"}, func(n *corev1.Node) { n.Labels["zone"] = "n3" })
				},
				func(h *kit.Harness) { kit.Remove[*storagev1.StorageClass](h.API, kube.Key{Name: "slow"}) },
			},
			Check: func(t testing.TB, h *kit.Harness) {
				if d := cmp.Diff([]string{"fast zone=n1 1Gi", "fast zone=n3 1Gi"}, objects(h)); d != "" {
					t.Error(d)
				}
			},
		})
	}
}

// A conflict is an ordinary reason to look again, and says nothing to anybody.
func TestConflicts(t *testing.T) {
	h := world(t, "a")
	start(h)
	h.Settle()
	holding(h, nil)
	h.API.Conflict("csistoragecapacities", 2)
	h.Horizon = 3 * time.Minute
	h.Settle()
	expect(t, h, "after two conflicts", "fast zone=a 1Gi")
}

// What fails for one class does not hold up the other, and an object that is gone when it is written comes
// back by the watch.
func TestWritesThatFail(t *testing.T) {
	h := world(t, "a")
	h.Put(late("twin"))
	c := start(h)
	h.Settle()
	holding(h, nil)
	h.Stores.Hold()
	gone := remove(h, 0)
	h.Horizon = 2 * c.options.PollInterval
	h.Settle()
	expect(t, h, "the other class is written", "twin zone=a 1Gi")
	h.Stores.Sync()
	h.Settle()
	expect(t, h, "and "+gone+" is made again", "fast zone=a 1Gi", "twin zone=a 1Gi")
}
