// SPDX-License-Identifier: Apache-2.0

package content

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/throttle"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// lister is a world whose driver has no GetSnapshot, and a content whose snapshot is not ready for long.
func lister(t *testing.T) (*kit.Harness, *kube.Content) {
	t.Helper()
	h := kit.New(t)
	h.Put(kit.SnapshotClass(kit.SnapshotClassName))
	h.Driver.PutVolume("pv", 1<<30)
	h.Driver.Capabilities = capability.Of(nil, csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT, csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS)
	h.Driver.ReadyAfter = 1000
	live(h)
	return h, bound(h)
}

// underAnotherID makes the first answer name another id than all later ones.
func underAnotherID(s *csi.Snapshot) *csi.Snapshot {
	s.SnapshotId = "first"
	return s
}

// lose makes the driver lose what it has taken, and gives the id that it had and that another one will have.
func lose(h *kit.Harness, c *kube.Content) string {
	h.T.Helper()
	id := kit.SnapshotHandle("snapshot-" + string(c.Spec.VolumeSnapshotRef.UID))
	if err := h.Driver.DeleteSnapshot(h.T.Context(), &csi.DeleteSnapshotRequest{SnapshotId: id}); err != nil {
		h.T.Fatal(err)
	}
	return id
}

func snapshotsAt(h *kit.Harness) (n int) {
	for _, stored := range h.Driver.Inventory() {
		if strings.HasPrefix(stored, "snapshot") {
			n++
		}
	}
	return n
}

// What the list has shown and shows no more is lost. Catches a room that asks for it by its name then, and leaves at the driver what
// it gets.
func TestLostFromTheList(t *testing.T) {
	h, c := lister(t)
	h.Horizon = 5 * time.Second
	h.Settle()
	lose(h, c)
	calls := len(h.Driver.Calls("CreateSnapshot"))
	h.Horizon = 10 * time.Minute
	h.Settle()
	got := now(h, c)
	if got.Status.Error == nil || len(h.Driver.Calls("CreateSnapshot")) != calls || snapshotsAt(h) != 0 {
		t.Errorf("%+v\n%s", got.Status, h.Trace())
	}
	deleteBoth(h, c)
	h.Settle()
	if left := kit.All[*kube.Content](h.API); len(left) != 0 {
		t.Errorf("left: %v", h.State())
	}
}

// What the list never showed is asked for by its name, once. Catches a room that leaves at the driver what was taken in its place, one
// that takes another again and again, one that gives up when the removal fails, and one that forgets it when all goes.
func TestReplacementIsRemoved(t *testing.T) {
	for title, leaves := range map[string]bool{"the content stays": false, "the content goes before it is removed": true} {
		t.Run(title, func(t *testing.T) {
			h, c := lister(t)
			h.Driver.Next("CreateSnapshot", kit.Reply{Snapshot: underAnotherID})
			h.Horizon = 0
			h.Settle()
			h.Clock.Step(2 * time.Minute)
			id := lose(h, c)
			h.Log.Clear()
			fails := kit.Reply{Code: codes.Unavailable, Text: "x", Times: 3}
			if leaves {
				fails.Meanwhile = func() { deleteBoth(h, c) }
			}
			h.Driver.Next("DeleteSnapshot", fails)
			h.Horizon = 10 * time.Minute
			h.Settle()
			calls, removals := len(h.Driver.Calls("CreateSnapshot")), 0
			for _, call := range h.Driver.Calls("DeleteSnapshot") {
				if call.Request.(*csi.DeleteSnapshotRequest).GetSnapshotId() == id {
					removals++
				}
			}
			if calls != 3 || removals != 5 || snapshotsAt(h) != 0 { // the first of them was the test's
				t.Errorf("%d creations, %d removals, left %v\n%s", calls, removals, h.Driver.Inventory(), h.Trace())
			}
			if !leaves {
				said := strings.Join(h.Recorder.Events(), "\n")
				if got := now(h, c); *got.Status.SnapshotHandle != "first" || got.Status.Error == nil || !strings.Contains(said, `does not list snapshot \"first\" any more`) {
					t.Errorf("%+v\n%s", got.Status, said)
				}
				deleteBoth(h, c)
				h.Settle()
			}
			if left := kit.All[*kube.Content](h.API); len(left) != 0 {
				t.Errorf("left: %v", h.State())
			}
		})
	}
}

// A snapshot under another id may be the very one: a driver has begun to write its ids in another way, or answers badly. Catches a
// room that deletes whatever is not what it knows.
func TestNoReplacement(t *testing.T) {
	for title, script := range map[string]func(h *kit.Harness, c *kube.Content){
		"ids are written in another way": func(*kit.Harness, *kube.Content) {},
		"it has no time": func(h *kit.Harness, c *kube.Content) {
			lose(h, c)
			h.Driver.Next("CreateSnapshot", kit.Reply{Times: 99, Snapshot: func(s *csi.Snapshot) *csi.Snapshot { s.CreationTime = nil; return s }})
		},
		"it is of another volume": func(h *kit.Harness, c *kube.Content) {
			lose(h, c)
			h.Driver.Next("CreateSnapshot", kit.Reply{Times: 99, Snapshot: func(s *csi.Snapshot) *csi.Snapshot { s.SourceVolumeId = "other"; return s }})
		},
		"the list is not answered": func(h *kit.Harness, c *kube.Content) {
			lose(h, c)
			h.Driver.Next("ListSnapshots", kit.Reply{Code: codes.Internal, Text: "x", Times: 99})
		},
		"a content has it": func(h *kit.Harness, c *kube.Content) {
			id := lose(h, c)
			h.Stores.Hold()
			h.Put(kit.Content(kit.Snapshot("other", "data"), "", func(c *kube.Content) {
				c.Spec.Source = snapv1.VolumeSnapshotContentSource{SnapshotHandle: &id}
			}))
		},
		"a content has it, and at first nobody can tell": func(h *kit.Harness, c *kube.Content) {
			id := lose(h, c)
			h.Stores.Hold()
			h.API.Script(kit.Rule{Verb: "list", Resource: "volumesnapshotcontents", Err: apierrors.NewInternalError(errors.New("etcd")), Times: 2})
			h.Put(kit.Content(kit.Snapshot("other", "data"), "", func(c *kube.Content) {
				c.Spec.Source = snapv1.VolumeSnapshotContentSource{SnapshotHandle: &id}
			}))
		},
	} {
		t.Run(title, func(t *testing.T) {
			h, c := lister(t)
			h.Driver.Next("CreateSnapshot", kit.Reply{Snapshot: underAnotherID})
			h.Horizon = 0
			h.Settle()
			h.Clock.Step(2 * time.Minute)
			script(h, c)
			before := len(h.Driver.Calls("DeleteSnapshot"))
			h.Horizon = time.Minute
			h.Settle()
			if len(h.Driver.Calls("DeleteSnapshot")) != before || len(h.Driver.Calls("CreateSnapshot")) < 2 || now(h, c).Status.Error == nil {
				t.Errorf("%v\n%s", h.Driver.Calls("DeleteSnapshot"), h.Trace())
			}
		})
	}
}

// A snapshot that goes while its first call waits for its turn costs no call, and a repeat is made all the same. Catches what is
// taken to be deleted again, and what is left.
func TestSnapshotGoesBeforeItsTurn(t *testing.T) {
	gate := func(h *kit.Harness) func(*Deps) {
		return func(d *Deps) {
			d.Driver = throttle.New(h.Driver, throttle.Options{Most: 4, Deadline: 10 * time.Second, Clock: h.Clock})
		}
	}
	for title, c := range map[string]struct {
		first []kit.Reply
		calls int
	}{
		"the first call": {nil, 0},
		"a repeat":       {[]kit.Reply{{Code: codes.Unavailable, Text: "x", Done: true}}, 2},
	} {
		t.Run(title, func(t *testing.T) {
			h := kit.New(t)
			h.Put(kit.SnapshotClass(kit.SnapshotClassName))
			h.Driver.PutVolume("pv", 1<<30)
			live(h, gate(h))
			content := bound(h)
			h.Driver.Next("CreateSnapshot", c.first...)
			goes := kit.Rule{Verb: "patch", Resource: "volumesnapshotcontents", Times: 1, Meanwhile: func() { deleteBoth(h, content) }}
			if c.first != nil {
				h.Horizon = 0
				h.Settle()
				deleteBoth(h, content)
				h.Horizon = 10 * time.Minute
			} else {
				h.API.Script(goes)
			}
			h.Settle()
			if n := len(h.Driver.Calls("CreateSnapshot")); n != c.calls || snapshotsAt(h) != 0 || len(kit.All[*kube.Content](h.API)) != 0 {
				t.Errorf("%d calls, left %v %v\n%s", n, h.Driver.Inventory(), h.State(), h.Trace())
			}
		})
	}
}

// The very snapshot stays when the driver writes its id in another way. Catches a room that believes a time which is its own, or one that
// the driver makes up for each answer.
func TestTheVerySnapshotStays(t *testing.T) {
	undated := func(s *csi.Snapshot) *csi.Snapshot { s.SnapshotId, s.CreationTime = "first", nil; return s }
	for title, c := range map[string]struct {
		first func(*csi.Snapshot) *csi.Snapshot
		time  func(h *kit.Harness) time.Time
	}{
		"no time at first":        {undated, func(*kit.Harness) time.Time { return time.Unix(4_000_000_000, 0) }},
		"the time of each answer": {underAnotherID, func(h *kit.Harness) time.Time { return h.Clock.Now().Add(time.Second) }},
	} {
		t.Run(title, func(t *testing.T) {
			h, _ := lister(t)
			h.Driver.Next("CreateSnapshot", kit.Reply{Snapshot: c.first}, kit.Reply{Times: 99, Snapshot: func(s *csi.Snapshot) *csi.Snapshot {
				s.CreationTime = timestamppb.New(c.time(h))
				return s
			}})
			h.Horizon = 20 * time.Minute
			h.Settle()
			if snapshotsAt(h) != 1 || len(h.Driver.Calls("CreateSnapshot")) < 3 {
				t.Errorf("%v\n%s", h.Driver.Inventory(), h.Trace())
			}
		})
	}
}
