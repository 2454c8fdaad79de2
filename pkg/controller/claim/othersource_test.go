// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestOtherSourceIsToldOnce: the driver says that it has made a volume from something else than it was asked to. Drivers have more than one name for
// a source, so that the volume is kept; but somebody has to look. Catches one that asks only whether there is an answer, one that destroys what is
// right, and one that has an event more for each volume of such a driver.
func TestOtherSourceIsToldOnce(t *testing.T) {
	other := func(v *csi.Volume) *csi.Volume {
		v.ContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: "another"}}}
		return v
	}
	for title, c := range map[string]struct {
		edit func(*csi.Volume) *csi.Volume
		told int
	}{"another": {other, 1}, "the same": {nil, 0}} {
		t.Run(title, func(t *testing.T) {
			h := restoring(t)
			h.Put(kit.Claim("second", kit.FromSnapshot("snap")))
			h.Driver.Next("CreateVolume", kit.Reply{Volume: c.edit, Times: 2})
			start(h)
			h.Settle()
			told := slices.DeleteFunc(h.Log.Lines(), func(line string) bool {
				return !strings.Contains(line, "Warning SourceDiffers the driver was asked to make volume ")
			})
			if len(told) != c.told || len(kit.All[*corev1.PersistentVolume](h.API)) != 2 || len(h.Driver.Calls("DeleteVolume")) != 0 {
				t.Errorf("told is %q\n%s", told, h.Trace())
			}
			if c.told > 0 && !strings.Contains(told[0], ` from snapshot "handle-of-snap", and says that it has made it from snapshot "another": unless `) {
				t.Error(told)
			}
		})
	}
}
