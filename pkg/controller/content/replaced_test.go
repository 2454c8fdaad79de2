// SPDX-License-Identifier: Apache-2.0

package content

import (
	"errors"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// lostOne is a world whose driver has lost a snapshot before it was ready, and takes another when it is asked for the first by name.
func lostOne(t *testing.T) (*kit.Harness, *kube.Content) {
	t.Helper()
	h, c := lister(t)
	h.Driver.Next("CreateSnapshot", kit.Reply{Snapshot: underAnotherID})
	h.Horizon = 0
	h.Settle()
	h.Clock.Step(2 * time.Minute)
	lose(h, c)
	h.Log.Clear()
	return h, c
}

// What was taken in the place of a lost snapshot goes with the content, also when nobody could write down that it was taken. Catches a room
// that lets the content go because the snapshot on record is gone.
func TestReplacementOfWhichNobodyKnows(t *testing.T) {
	for title, script := range map[string]func(h *kit.Harness, c *kube.Content){
		"the answer is lost, and the snapshot goes": func(h *kit.Harness, c *kube.Content) {
			h.Driver.Next("CreateSnapshot", kit.Reply{Code: codes.DeadlineExceeded, Text: "late", Done: true, Meanwhile: func() { deleteBoth(h, c) }})
		},
		"the status cannot be written, and the snapshot goes": func(h *kit.Harness, c *kube.Content) {
			h.API.Script(kit.Rule{
				Verb: "patch", Resource: "volumesnapshotcontents/status", Err: apierrors.NewInternalError(errors.New("etcd")), Times: 1,
				Meanwhile: func() { deleteBoth(h, c) },
			})
		},
		"the process ends before the removal, and the snapshot goes meanwhile": func(h *kit.Harness, c *kube.Content) {
			h.Driver.Next("DeleteSnapshot", kit.Reply{Code: codes.Unavailable, Text: "x", Times: 1})
			h.Horizon = 4 * time.Second
			h.Settle()
			if n := snapshotsAt(h); n != 1 {
				t.Fatal(n, h.Trace())
			}
			h.Restart()
			live(h)
			deleteBoth(h, c)
		},
	} {
		t.Run(title, func(t *testing.T) {
			h, c := lostOne(t)
			script(h, c)
			h.Horizon = 10 * time.Minute
			h.Settle()
			if n := snapshotsAt(h); n != 0 || len(kit.All[*kube.Content](h.API)) != 0 {
				t.Errorf("%d snapshots left, of which no object knows: %v %v\n%s", n, h.Driver.Inventory(), h.State(), h.Trace())
			}
		})
	}
}

// What the driver answers to the name of a content that goes with its data goes, too, whichever snapshot it is. Catches a room that asks before
// the end, and leaves what it got for want of a proof that only a living content needs.
func TestNothingIsLeftOfTheNameAtTheEnd(t *testing.T) {
	for title, script := range map[string]func(h *kit.Harness, c *kube.Content){
		"taken soon after the first": func(h *kit.Harness, c *kube.Content) { h.Clock.Step(30 * time.Second); lose(h, c) },
		"no time": func(h *kit.Harness, c *kube.Content) {
			lose(h, c)
			h.Driver.Next("CreateSnapshot", kit.Reply{Times: 99, Snapshot: func(s *csi.Snapshot) *csi.Snapshot { s.CreationTime = nil; return s }})
		},
		"no source": func(h *kit.Harness, c *kube.Content) {
			lose(h, c)
			h.Driver.Next("CreateSnapshot", kit.Reply{Times: 99, Snapshot: func(s *csi.Snapshot) *csi.Snapshot { s.SourceVolumeId = ""; return s }})
		},
		"the very snapshot under another id": func(*kit.Harness, *kube.Content) {},
		"the list says NotFound for empty": func(h *kit.Harness, c *kube.Content) {
			lose(h, c)
			h.Driver.Next("ListSnapshots", kit.Reply{Code: codes.NotFound, Text: "none", Times: 9999})
		},
	} {
		t.Run(title, func(t *testing.T) {
			h, c := lister(t)
			h.Driver.Next("CreateSnapshot", kit.Reply{Snapshot: underAnotherID})
			h.Horizon = 0
			h.Settle()
			script(h, c)
			deleteBoth(h, c)
			h.Log.Clear()
			h.Horizon = time.Minute
			h.Settle()
			if n := snapshotsAt(h); n != 0 || len(kit.All[*kube.Content](h.API)) != 0 {
				t.Errorf("%d left, %v %v\n%s", n, h.Driver.Inventory(), h.State(), h.Trace())
			}
		})
	}
}

// What is only another answer to the name is no proof that it may go when the policy has changed to Retain meanwhile, when another content
// has it, or when it is of another volume. Catches a room that carries out what it once decided, and one that removes whatever it is answered.
func TestAnotherAnswerStaysWithWhoKeepsIt(t *testing.T) {
	id := func(c *kube.Content) string {
		return kit.SnapshotHandle("snapshot-" + string(c.Spec.VolumeSnapshotRef.UID))
	}
	for title, keeps := range map[string]func(h *kit.Harness, c *kube.Content){
		"Retain": func(h *kit.Harness, c *kube.Content) {
			kit.Edit(h.API, kube.KeyOf(c), func(c *kube.Content) { c.Spec.DeletionPolicy = snapv1.VolumeSnapshotContentRetain })
		},
		"another content": func(h *kit.Harness, c *kube.Content) {
			handle := id(c)
			h.Put(kit.Content(kit.Snapshot("other", "data"), "", func(c *kube.Content) {
				c.Spec.Source = snapv1.VolumeSnapshotContentSource{SnapshotHandle: &handle}
			}))
		},
		"another volume": func(*kit.Harness, *kube.Content) {},
	} {
		t.Run(title, func(t *testing.T) {
			h, c := lister(t)
			h.Driver.Next("CreateSnapshot", kit.Reply{Snapshot: underAnotherID}, kit.Reply{Meanwhile: func() { keeps(h, c) }, Snapshot: func(s *csi.Snapshot) *csi.Snapshot {
				if title == "another volume" {
					s.SourceVolumeId = title
				}
				return s
			}})
			h.Horizon = 0
			h.Settle()
			deleteBoth(h, c)
			h.Horizon = 10 * time.Minute
			h.Settle()
			for _, call := range h.Driver.Calls("DeleteSnapshot") {
				if call.Request.(*csi.DeleteSnapshotRequest).GetSnapshotId() == id(c) {
					t.Error("what is kept was deleted", h.Trace())
				}
			}
		})
	}
}

// A deletion ends whatever the driver answers when it is asked whether something is in the place of the snapshot. Catches a content that
// is stuck for the sake of what most probably does not exist.
func TestDeletionEndsWhateverIsAnswered(t *testing.T) {
	// What an answer proves ends the waiting at once; what proves nothing is asked again, for five minutes.
	soon := map[string]bool{"another id": true, "refused": true, "the volume is gone, too": true}
	for title, reply := range map[string]kit.Reply{
		"another id": {Times: 9999},
		"a time of each answer": {Times: 9999, Snapshot: func(s *csi.Snapshot) *csi.Snapshot {
			s.CreationTime = timestamppb.New(time.Now().Add(1e5 * time.Hour))
			return s
		}},
		"late":                    {Times: 9999, Code: codes.DeadlineExceeded, Text: "x"},
		"vague":                   {Times: 9999, Code: codes.Internal, Text: "x"},
		"refused at the door":     {Times: 9999, Code: codes.PermissionDenied, Text: "x"},
		"it takes it for another": {Times: 9999, Code: codes.AlreadyExists, Text: "x"},
		"refused":                 {Times: 9999, Code: codes.InvalidArgument, Text: "x"},
		"the volume is gone, too": {Times: 9999, Code: codes.NotFound, Text: "x"},
	} {
		t.Run(title, func(t *testing.T) {
			h, c := lister(t)
			h.Driver.Next("CreateSnapshot", kit.Reply{Snapshot: underAnotherID})
			h.Horizon = 0
			h.Settle()
			h.Driver.Next("CreateSnapshot", reply)
			deleteBoth(h, c)
			h.Horizon = time.Hour
			if soon[title] {
				h.Horizon = 10 * time.Second
			}
			h.Settle()
			if len(kit.All[*kube.Content](h.API)) != 0 || len(h.Driver.Calls("DeleteSnapshot")) == 0 {
				t.Errorf("%v\n%s", h.State(), h.Trace())
			}
		})
	}
}

// Whoever can be asked by the handle, and whoever has listed the snapshot, is not asked by the name when it goes. Catches a deletion that
// takes another snapshot only to delete it.
func TestNoQuestionBeforeTheEnd(t *testing.T) {
	h, c := lister(t)
	h.Horizon = 5 * time.Second
	h.Settle()
	lose(h, c)
	deleteBoth(h, c)
	h.Horizon = 10 * time.Minute
	h.Settle()
	if calls := len(h.Driver.Calls("CreateSnapshot")); calls != 1 || len(kit.All[*kube.Content](h.API)) != 0 {
		t.Errorf("%d calls\n%s", calls, h.Trace())
	}
}

// The removal of what was taken in the place of a lost snapshot waits for its turn, and an import takes hold of it meanwhile. Catches a
// room that deletes the data of a living content on the strength of an old look.
func TestReplacementFindsAHolderBeforeItsTurn(t *testing.T) {
	h, c := lostOne(t)
	id := kit.SnapshotHandle("snapshot-" + string(c.Spec.VolumeSnapshotRef.UID))
	imported := false
	h.Restart()
	live(h, func(d *Deps) {
		d.Driver = kit.Crowd(h, func() {
			if !imported {
				h.Put(kit.Content(kit.Snapshot("other", "data"), "", func(c *kube.Content) {
					c.Spec.Source = snapv1.VolumeSnapshotContentSource{SnapshotHandle: &id}
				}))
			}
			imported = true
		})
	})
	before := len(h.Driver.Calls("DeleteSnapshot"))
	h.Horizon = time.Minute
	h.Settle()
	if !imported || len(h.Driver.Calls("DeleteSnapshot")) != before || snapshotsAt(h) != 1 {
		t.Errorf("imported %v, left %v\n%s", imported, h.Driver.Inventory(), h.Trace())
	}
}
