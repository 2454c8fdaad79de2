// SPDX-License-Identifier: Apache-2.0

package content

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestNameFlagsThatChangeWhileACreateIsOpen (I1): the driver has made the snapshot, the answer was lost, and the process comes back with another
// prefix, and with another length. A program that makes the name anew has a second snapshot taken, and the first is nobody's.
func TestNameFlagsThatChangeWhileACreateIsOpen(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"prefix": func(o *Options) { o.NamePrefix = "other" },
		"length": func(o *Options) { o.NameLength = 8 },
	} {
		h, _ := start(t)
		c := bound(h)
		h.Driver.Next("CreateSnapshot", kit.Reply{Code: codes.DeadlineExceeded, Done: true})
		h.Horizon = 100 * time.Millisecond
		h.Settle()
		writes := len(h.Log.Lines())
		h.Restart()
		h.Horizon = 30 * time.Minute
		change(&live(h).options)
		h.Settle()
		if left := h.Driver.Inventory(); len(left) != 2 {
			t.Errorf("%s: leaked: %v", name, left)
		}
		if got := now(h, c).Annotations[wellknown.AnnSnapshotName]; got != "snapshot-"+string(c.Spec.VolumeSnapshotRef.UID) {
			t.Errorf("%s: on record is %q", name, got)
		}
		if writes != 4 {
			t.Errorf("%s: the mark, the call, the error and its event were to be seen, not %v", name, h.Log.Lines()[:writes])
		}
	}
}

// shortNames is a driver that refuses names of more than 20 characters.
type shortNames struct{ *kit.Driver }

func (d shortNames) CreateSnapshot(ctx context.Context, request *csi.CreateSnapshotRequest) (*csi.Snapshot, error) {
	if len(request.GetName()) > 20 {
		d.Next("CreateSnapshot", kit.Reply{Code: codes.InvalidArgument, Text: "name too long"})
	}
	return d.Driver.CreateSnapshot(ctx, request)
}

// TestNameThatTheDriverRefuses: the driver takes no names as long as those of the flags, and the administrator corrects them. A program that asks by
// the name on record whatever was said of it is refused for ever; one that asks by another than is on record loses it with the process.
func TestNameThatTheDriverRefuses(t *testing.T) {
	h, _ := start(t, func(d *Deps) { d.Driver = shortNames{d.Driver.(*kit.Driver)} })
	c := bound(h)
	h.Horizon = 10 * time.Minute
	h.Settle()
	if got := now(h, c); got.Status == nil || got.Status.Error == nil || !strings.Contains(*got.Status.Error.Message, "too long") {
		t.Fatalf("%+v", got.Status)
	}
	h.Restart()
	live(h, func(d *Deps) { d.Driver = shortNames{h.Driver} }).options.NameLength = 8
	h.Driver.Next("CreateSnapshot", kit.Reply{Code: codes.InvalidArgument}, kit.Reply{Code: codes.DeadlineExceeded, Done: true})
	h.Settle()
	got := now(h, c)
	if got.Status.SnapshotHandle == nil || got.Status.Error != nil || len(h.Driver.Inventory()) != 2 {
		t.Errorf("status %+v, at the driver %v\n%s", got.Status, h.Driver.Inventory(), h.Trace())
	}
	if recorded := got.Annotations[wellknown.AnnSnapshotName]; len(recorded) > 20 {
		t.Errorf("on record is %q", recorded)
	}
}
