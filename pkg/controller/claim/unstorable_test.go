// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestUnstorable: a volume whose PersistentVolume the API refuses for what it says is removed and asked for anew; nothing stays
// at the driver when the claim goes. Catches a provisioner that holds on to it for ever, and one that removes what was written.
func TestUnstorable(t *testing.T) {
	refusals := map[string]error{
		"invalid":   apierrors.NewInvalid(schema.GroupKind{Kind: "PersistentVolume"}, name, nil),
		"bad":       apierrors.NewBadRequest("no"),
		"too large": apierrors.NewRequestEntityTooLargeError("limit is 3145728"),
	}
	for title, refusal := range refusals {
		t.Run(title+", until the driver has learned", func(t *testing.T) {
			h := world(t, kit.Claim("data"))
			h.API.Fail("create", "persistentvolumes", refusal, 2)
			start(h)
			h.Settle()
			if _, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name}); !ok || len(h.Driver.Calls("DeleteVolume")) != 2 || len(h.Driver.Inventory()) != 1 {
				t.Error(h.Driver.Inventory(), h.Trace())
			}
			if lines := fmt.Sprint(h.Log.Lines()); !strings.Contains(lines, failed+"saving PersistentVolume "+name+": ") || !strings.Contains(lines, refusal.Error()) {
				t.Error("not told what is refused:", lines)
			}
		})
		t.Run(title+", and the claim goes", func(t *testing.T) {
			h := world(t, kit.Claim("data"))
			h.API.Fail("create", "persistentvolumes", refusal, 99)
			start(h)
			h.Horizon = 10 * time.Second
			h.Settle()
			kit.Remove[*corev1.PersistentVolumeClaim](h.API, dataKey)
			h.Horizon = time.Hour
			h.Settle()
			if left := h.Driver.Inventory(); len(left) != 0 {
				t.Error("left at the driver:", left, h.Trace())
			}
		})
	}
	t.Run("but it was written", func(t *testing.T) {
		h := world(t, kit.Claim("data"))
		h.API.Script(kit.Rule{Verb: "create", Resource: "persistentvolumes", Times: 1, Err: refusals["invalid"], Done: true})
		start(h)
		h.Settle()
		if calls := h.Driver.Calls("DeleteVolume"); len(calls) != 0 || len(h.Driver.Inventory()) != 1 {
			t.Error(calls, h.Trace())
		}
	})
	t.Run("nothing is removed while nobody knows whether it was written", func(t *testing.T) {
		h := world(t, kit.Claim("data"))
		h.API.Fail("create", "persistentvolumes", refusals["invalid"], 99)
		h.API.Fail("list", "persistentvolumes", apierrors.NewInternalError(errors.New("etcd")), 99)
		start(h)
		h.Horizon = time.Minute
		h.Settle()
		if calls := h.Driver.Calls("DeleteVolume"); len(calls) != 0 {
			t.Error(calls, h.Trace())
		}
	})
}

// TestUnstorableWhereverItDies: neither end of the program leaves a second volume, or none.
func TestUnstorableWhereverItDies(t *testing.T) {
	kit.Crash(t, kit.Scenario{
		World: func(h *kit.Harness) {
			h.Driver.Capabilities = can()
			h.Put(kit.Class(kit.ClassName), kit.Claim("data"))
			h.API.Fail("create", "persistentvolumes", apierrors.NewBadRequest("no"), 2)
		},
		Program: func(h *kit.Harness) { start(h) },
		Check: func(t testing.TB, h *kit.Harness) {
			if _, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name}); !ok || len(h.Driver.Inventory()) != 1 {
				t.Error(h.Driver.Inventory(), h.Trace())
			}
		},
	})
}
