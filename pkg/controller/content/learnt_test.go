// SPDX-License-Identifier: Apache-2.0

package content

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// learns is an upgrade of the driver, after which its snapshots can be asked for by their handles; the process begins anew with it.
func learns(h *kit.Harness) {
	h.Driver.Capabilities = capability.Of(nil, csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT, csi.ControllerServiceCapability_RPC_GET_SNAPSHOT)
	h.Restart()
	live(h)
}

// lostByGetter is a world whose driver has GetSnapshot, and has lost a snapshot before it was ready.
func lostByGetter(t *testing.T) (*kit.Harness, *kube.Content) {
	t.Helper()
	h := kit.New(t)
	h.Put(kit.SnapshotClass(kit.SnapshotClassName))
	h.Driver.PutVolume("pv", 1<<30)
	h.Driver.ReadyAfter = 1000
	learns(h)
	c := bound(h)
	h.Driver.Next("CreateSnapshot", kit.Reply{Snapshot: underAnotherID})
	h.Horizon = 0
	h.Settle()
	h.Clock.Step(2 * time.Minute)
	lose(h, c)
	return h, c
}

// What a driver has taken in the place of a lost snapshot goes with the content, also when the driver can be asked by the handle by now. Catches
// a room that asks by the name before the end only those drivers which cannot, and leaves what was taken before they could, or while that call failed.
func TestReplacementAtADriverWithGetSnapshot(t *testing.T) {
	for title, world := range map[string]func(t *testing.T) (*kit.Harness, *kube.Content){
		"it has learnt it since": func(t *testing.T) (*kit.Harness, *kube.Content) {
			h, c := lostOne(t)
			h.Driver.Next("CreateSnapshot", kit.Reply{Code: codes.DeadlineExceeded, Text: "late", Done: true})
			h.Settle()
			learns(h)
			return h, c
		},
		"the call has failed": func(t *testing.T) (*kit.Harness, *kube.Content) {
			h, c := lostByGetter(t)
			h.Driver.Next("GetSnapshot", kit.Reply{Code: codes.Internal, Text: "x"})
			return h, c
		},
		"the call has failed, and the next process does not know": func(t *testing.T) (*kit.Harness, *kube.Content) {
			h, c := lostByGetter(t)
			h.Driver.Next("GetSnapshot", kit.Reply{Code: codes.Internal, Text: "x"})
			h.Settle()
			learns(h)
			return h, c
		},
	} {
		t.Run(title, func(t *testing.T) {
			h, c := world(t)
			h.Horizon = time.Minute
			h.Settle()
			if n := snapshotsAt(h); n != 1 {
				t.Fatal("nothing was taken in its place: ", n, h.Trace())
			}
			deleteBoth(h, c)
			h.Horizon = 10 * time.Minute
			h.Settle()
			if n := snapshotsAt(h); n != 0 || len(kit.All[*kube.Content](h.API)) != 0 {
				t.Errorf("%d snapshots left, of which no object knows: %v %v\n%s", n, h.Driver.Inventory(), h.State(), h.Trace())
			}
		})
	}
}

// A deletion is one call, unless another process may have asked for the snapshot by its name and this one has not seen it since. Catches a room
// that asks before each deletion, and one that takes a snapshot to learn whether it was lost.
func TestCallsOfADeletion(t *testing.T) {
	remove := []string{"DeleteSnapshot"}
	for title, c := range map[string]struct {
		// passes is what passes after the snapshot was taken, and before the next process begins, if there is one.
		passes time.Duration
		then   func(h *kit.Harness)
		want   []string
	}{
		"before it was asked about":                  {0, func(*kit.Harness) {}, remove},
		"after":                                      {10 * time.Second, func(*kit.Harness) {}, remove},
		"by the next process":                        {0, learns, []string{"GetSnapshot", "DeleteSnapshot"}},
		"by the next process, which knows it":        {0, func(h *kit.Harness) { learns(h); h.Clock.Step(time.Second); h.Settle() }, remove},
		"by the next process, of one that was ready": {5 * time.Hour, learns, remove},
		"of one that was asked about by its name": {0, func(h *kit.Harness) {
			h.Driver.Capabilities = capability.Of(nil, csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT)
			h.Restart()
			live(h)
			h.Clock.Step(time.Second)
			h.Settle()
		}, remove},
	} {
		t.Run(title, func(t *testing.T) {
			h := kit.New(t)
			h.Put(kit.SnapshotClass(kit.SnapshotClassName))
			h.Driver.PutVolume("pv", 1<<30)
			h.Driver.ReadyAfter = 100
			learns(h)
			content := bound(h)
			h.Horizon = c.passes
			h.Settle()
			h.Horizon = 0
			c.then(h)
			before := len(h.Driver.Calls())
			deleteBoth(h, content)
			h.Horizon = time.Second / 2
			h.Settle()
			var calls []string
			for _, call := range h.Driver.Calls()[before:] {
				calls = append(calls, call.Method)
			}
			if !slices.Equal(calls, c.want) || len(kit.All[*kube.Content](h.API)) != 0 {
				t.Errorf("%v\n%s", calls, h.Trace())
			}
		})
	}
}

// The content of a snapshot that lives was deleted by hand, and the driver can be asked by the name only. Catches a room that asks without a pause,
// and one that takes an answer of then for one at the end.
func TestContentDeletedByHandBeforeItIsReady(t *testing.T) {
	for title, isMarked := range map[string]bool{"": false, "with the mark of an end": true} {
		t.Run(title, func(t *testing.T) {
			h := kit.New(t)
			h.Put(kit.SnapshotClass(kit.SnapshotClassName))
			h.Driver.PutVolume("pv", 1<<30)
			h.Driver.Capabilities = capability.Of(nil, csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT)
			h.Driver.ReadyAfter = 1_000_000
			live(h)
			id := "first"
			h.Driver.Next("CreateSnapshot", kit.Reply{Times: 1_000_000, Snapshot: func(s *csi.Snapshot) *csi.Snapshot {
				if id != "" {
					s.SnapshotId = id
				}
				return s
			}})
			c := bound(h)
			h.Horizon = 0
			h.Settle()
			if isMarked {
				mark(h, c)
			}
			kit.Remove[*kube.Content](h.API, kube.KeyOf(c))
			h.Horizon = time.Minute
			h.Settle()
			if n := len(h.Driver.Calls("CreateSnapshot")); n > 10 {
				t.Fatalf("asked %d times in a minute", n)
			}
			lose(h, c)
			id = ""
			h.Settle()
			if n := snapshotsAt(h); n != 1 {
				t.Fatal(n, h.Trace())
			}
			deleteBoth(h, c)
			h.Settle()
			if n := snapshotsAt(h); n != 0 || len(kit.All[*kube.Content](h.API)) != 0 {
				t.Errorf("%d left, %v %v\n%s", n, h.Driver.Inventory(), h.State(), h.Trace())
			}
		})
	}
}

// A driver answers about another snapshot than it was asked for, which is ready: it ignores what it is asked for. Catches a room that takes the first
// answer for the right one.
func TestAnswersAboutAnother(t *testing.T) {
	another := kit.Reply{Times: 99, Snapshot: func(s *csi.Snapshot) *csi.Snapshot { s.SnapshotId, s.ReadyToUse = "another", true; return s }}
	for _, method := range []string{"GetSnapshot", "ListSnapshots"} {
		t.Run(method, func(t *testing.T) {
			h := kit.New(t)
			h.Put(kit.SnapshotClass(kit.SnapshotClassName))
			h.Driver.PutVolume("pv", 1<<30)
			if method == "ListSnapshots" {
				h.Driver.Capabilities = capability.Of(nil, csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT, csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS)
			}
			h.Driver.ReadyAfter = 1000
			live(h)
			h.Driver.Next(method, another)
			c := bound(h)
			h.Horizon = 30 * time.Second
			h.Settle()
			if got := now(h, c); len(h.Driver.Calls(method)) < 2 || *got.Status.ReadyToUse {
				t.Errorf("%+v\n%s", got.Status, h.Trace())
			}
		})
	}
}

// moody is a driver whose answers are lost, for a number of calls.
type moody struct {
	Driver
	lost *int
}

func (d moody) CreateSnapshot(ctx context.Context, request *csi.CreateSnapshotRequest) (*csi.Snapshot, error) {
	made, err := d.Driver.CreateSnapshot(ctx, request)
	if *d.lost == 0 {
		return made, err
	}
	*d.lost--
	return nil, fault.New(fault.CreateSnapshot, status.Error(codes.Internal, "x"))
}

// The same, and for long the driver says nothing of use, so that nobody hears of what it takes in the place of a lost one. Catches a room whose
// patience for the end is over before the end has begun.
func TestPatienceBeginsWithTheEnd(t *testing.T) {
	h := kit.New(t)
	h.Put(kit.SnapshotClass(kit.SnapshotClassName))
	h.Driver.PutVolume("pv", 1<<30)
	h.Driver.Capabilities = capability.Of(nil, csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT)
	h.Driver.ReadyAfter = 1000
	lost := 0
	live(h, func(d *Deps) { d.Driver = moody{h.Driver, &lost} })
	h.Driver.Next("CreateSnapshot", kit.Reply{Snapshot: underAnotherID})
	c := bound(h)
	h.Horizon = 0
	h.Settle()
	lose(h, c)
	kit.Remove[*kube.Content](h.API, kube.KeyOf(c))
	lost = 1000
	h.Horizon = 20 * time.Minute
	h.Settle()
	deleteBoth(h, c)
	lost = 1
	h.Settle()
	if n := snapshotsAt(h); lost != 0 || n != 0 || len(kit.All[*kube.Content](h.API)) != 0 {
		t.Errorf("%d left, %v\n%s", n, h.State(), h.Trace())
	}
}
