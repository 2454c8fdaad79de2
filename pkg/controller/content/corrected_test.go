// SPDX-License-Identifier: Apache-2.0

package content

import (
	"slices"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestCorrectedClass: a parameter that the driver refuses for certain is corrected in the class, and the snapshot is taken with that at once. While an
// answer is out the request stays as it was, or the driver would take it for another. Catches parameters that are on record for good, and
// a class that changes a request of which a snapshot may have been made.
func TestCorrectedClass(t *testing.T) {
	for name, row := range map[string]struct {
		code  codes.Code
		times int
		want  []string
		dies  bool
		waits time.Duration
	}{
		"refused":                        {codes.InvalidArgument, 1, []string{"glod", "gold"}, false, 0},
		"refused, and another process":   {codes.InvalidArgument, 2, []string{"glod", "gold"}, true, time.Minute},
		"uncertain":                      {codes.DeadlineExceeded, 2, []string{"glod"}, false, time.Minute},
		"uncertain, and another process": {codes.DeadlineExceeded, 2, []string{"glod"}, true, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := start(t)
			class := kit.SnapshotClass("daily", func(c *snapv1.VolumeSnapshotClass) { c.Parameters = map[string]string{"tier": "glod"} })
			h.Put(class)
			bound(h, func(c *kube.Content) { c.Spec.VolumeSnapshotClassName = kit.Ptr("daily") })
			h.Driver.Next("CreateSnapshot", kit.Reply{Code: row.code, Text: "no such tier", Times: row.times, Done: row.code == codes.DeadlineExceeded})
			h.Horizon = 0
			h.Settle()
			if row.dies {
				h.Restart()
				live(h)
			}
			kit.Edit(h.API, kube.KeyOf(class), func(c *snapv1.VolumeSnapshotClass) { c.Parameters["tier"] = "gold" })
			h.Horizon = row.waits
			h.Settle()
			var sent []string
			for _, call := range h.Driver.Calls("CreateSnapshot") {
				sent = append(sent, call.Request.(*csi.CreateSnapshotRequest).GetParameters()["tier"])
			}
			if d := cmp.Diff(row.want, slices.Compact(sent)); d != "" {
				t.Errorf("%s\n%s", d, h.Trace())
			}
		})
	}
}
