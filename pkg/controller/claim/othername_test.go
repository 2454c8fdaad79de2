// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// A volume was made for node n1, and the answer was lost. The process is started anew with other flags for names, and the scheduler has chosen n2.
// Catches a request under the new name, with which the volume of the first is forgotten.
func TestOtherNameBehind(t *testing.T) {
	for title, prefix := range map[string]string{"same flags": "pvc", "other prefix": "vol"} {
		t.Run(title, func(t *testing.T) {
			h := scheduled(t)
			h.Play(kit.Binder(h.API))
			h.Driver.Next("CreateVolume", kit.Reply{Code: codes.DeadlineExceeded, Text: "late", Done: true})
			h.Horizon = 0
			startRecorded(h)
			h.Settle()
			h.Restart()
			kit.Edit(h.API, dataKey, func(c *corev1.PersistentVolumeClaim) { c.Annotations[wellknown.AnnSelectedNode] = "n2" })
			startRecorded(h, func(o *claim.Options, _ *claim.Deps) { o.NamePrefix = prefix })
			h.Horizon = time.Hour
			h.Settle()
			kit.Remove[*corev1.PersistentVolumeClaim](h.API, dataKey)
			h.Settle()
			if left := h.Driver.Inventory(); len(left) != 0 {
				t.Errorf("left at the driver: %v, on record %v\n%s", left, onRecord(h), strings.Join(effects(h), "\n"))
			}
		})
	}
}
