// SPDX-License-Identifier: Apache-2.0

package volume_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/csi-tandem/csi-tandem/pkg/controller/volume"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestAttachmentsOfOthersCostNothing (PP-5): a deletion looks at the attachments of its volume and at no others. Catches one that
// goes through all attachments of the cluster.
func TestAttachmentsOfOthersCostNothing(t *testing.T) {
	cost := func(others int) uint64 {
		h := world(t, released())
		for i := range others {
			h.Put(kit.Attachment(fmt.Sprint("a", i), fmt.Sprint("other-", i), "n1"))
		}
		h.Put(kit.Attachment("ours", "v", "n1"))
		c := volume.New(volume.Deps{
			Client: h.API, Driver: h.Driver, DriverName: kit.DriverName, Capabilities: h.Driver.Capabilities, Recorder: h.Recorder, Clock: h.Clock,
			Volumes: h.Stores.Volumes, Classes: h.Stores.StorageClasses, Attachments: h.Stores.Attachments, RetryStart: h.RetryStart, RetryMax: h.RetryMax,
		})
		look := func() {
			in, _, err := c.Look(h.Ctx, reconcile.Key{Name: key.Name})
			if err != nil || len(in.Attachments) != 1 {
				t.Fatalf("%d attachments, %v", len(in.Attachments), err)
			}
		}
		look()
		const looks = 50
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range looks {
			look()
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / looks
	}
	// A list of five thousand has forty thousand bytes; the rest of a look has far less.
	if few, many := cost(1), cost(5000); many > few+20_000 {
		t.Errorf("%d bytes beside one other attachment, %d beside 5000", few, many)
	}
	if len(kube.AttachmentIndexes()) == 0 {
		t.Error("attachments have no index")
	}
}
