// SPDX-License-Identifier: Apache-2.0

package content

import (
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// A content is made anew without its status, and the cache of snapshots is behind, or lacks the snapshot. Catches a room that takes a second snapshot because
// nothing in the caches says that there was one.
func TestAnewWithLaggingSnapshots(t *testing.T) {
	for _, without := range []bool{false, true} {
		h, c := takenLongAgo(t)
		old := now(h, c)
		kit.Edit(h.API, kube.KeyOf(c), func(c *kube.Content) { c.Finalizers = nil })
		kit.Remove[*kube.Content](h.API, kube.KeyOf(c))
		if err := h.Driver.DeleteSnapshot(h.Ctx, &csi.DeleteSnapshotRequest{SnapshotId: *old.Status.SnapshotHandle}); err != nil {
			t.Fatal(err)
		}
		h.Settle()
		h.Restart()
		behind := kube.NewStore(kube.SnapshotIndexes())
		s, _ := kit.Read[*snapv1.VolumeSnapshot](h.API, kube.Key{Namespace: kit.Namespace, Name: "snap"})
		if !without {
			b := s.DeepCopy()
			b.Status, b.ResourceVersion = nil, "1"
			behind.Show(b)
		}
		live(h, func(d *Deps) { d.Snapshots = behind })
		again := old.DeepCopy()
		again.Status, again.UID, again.ResourceVersion, again.CreationTimestamp = nil, "anew", "", metav1.NewTime(h.Clock.Now())
		h.Put(again)
		h.Horizon = time.Minute
		h.Settle()
		if n := len(h.Driver.Calls("CreateSnapshot")); n != 1 {
			got := now(h, c)
			t.Errorf("without=%v taken %d times; status %+v; snapshot's creationTime %v\n%s", without, n, got.Status, s.Status.CreationTime, h.Trace())
		}
	}
}

// Somebody spoils the status of what is ready: a user, or the last write of a process that led before. Catches a room that does not look again.
func TestReadyTakenBack(t *testing.T) {
	for name, edit := range map[string]func(*kube.Content){
		"late failure": func(c *kube.Content) {
			c.Status.ReadyToUse = kit.Ptr(false)
			c.Status.Error = &snapv1.VolumeSnapshotError{Message: kit.Ptr("Failed to create snapshot: x")}
		},
		"handle wiped": func(c *kube.Content) { c.Status = &snapv1.VolumeSnapshotContentStatus{} },
		"error only":   func(c *kube.Content) { c.Status.Error = &snapv1.VolumeSnapshotError{Message: kit.Ptr("x")} },
	} {
		h, c := takenLongAgo(t)
		kit.Edit(h.API, kube.KeyOf(c), edit)
		h.Horizon = 2 * time.Hour
		h.Settle()
		got := now(h, c)
		if name == "handle wiped" {
			if got.Status.Error == nil {
				t.Errorf("%s: nobody says a word: %+v", name, got.Status)
			}
			continue
		}
		if !isReady(got) || got.Status.Error != nil {
			t.Errorf("%s: still not ready after two hours: ready %v error %v", name, *got.Status.ReadyToUse, got.Status.Error)
		}
	}
}

// The status that the old leader writes arrives when the new one has finished. Catches a content that stays not ready.
func TestTwoLeaders(t *testing.T) {
	for name, row := range map[string]struct{ first, second kit.Reply }{
		"the old one was told a failure": {kit.Reply{Code: codes.Unavailable, Text: "gone", Done: true}, kit.Reply{}},
		"both succeed, another id":       {kit.Reply{}, kit.Reply{Snapshot: underAnotherID}},
	} {
		h, _ := start(t)
		var c *kube.Content
		second := New(*NewOptions(), Deps{
			Client: h.API, Driver: h.Driver, DriverName: kit.DriverName, Capabilities: h.Driver.Capabilities, Recorder: h.Recorder, Clock: h.Clock,
			Contents: h.Stores.Contents, Classes: h.Stores.SnapshotClasses, Snapshots: h.Stores.Snapshots,
			Workers: 1, RetryStart: time.Second, RetryMax: 5 * time.Minute,
		})
		h.Driver.Next("CreateSnapshot", row.first)
		h.Driver.Next("CreateSnapshot", row.second)
		h.API.Script(kit.Rule{Verb: "patch", Resource: "volumesnapshotcontents/status", Times: 1, Meanwhile: func() {
			for range 3 {
				if _, err := second.Reconcile(h.Ctx, reconcile.Key{Name: c.Name}); err != nil {
					t.Error(err)
				}
			}
			if !isReady(now(h, c)) {
				t.Error("the new one has not finished")
			}
		}})
		c = bound(h)
		h.Horizon = 0
		h.Settle()
		got := now(h, c)
		t.Logf("%s: ready %v, handle %s, error %v", name, *got.Status.ReadyToUse, *got.Status.SnapshotHandle, got.Status.Error)
		// From here on only the new one lives.
		h.Restart()
		h.Add(kit.Room{Name: "new", Reconcile: second.Reconcile, Keys: func(kit.Change) []reconcile.Key { return nil }})
		for _, r := range second.OnContent(kube.Change[*kube.Content]{Old: func() *kube.Content {
			o := got.DeepCopy()
			o.Status.ReadyToUse = kit.Ptr(true)
			o.Status.Error = nil
			o.ResourceVersion = "1"
			return o
		}(), New: got}) {
			h.Enqueue("new", r)
		}
		h.Horizon = 2 * time.Hour
		h.Settle()
		if got = now(h, c); !isReady(got) || got.Status.Error != nil {
			t.Errorf("%s: after two hours ready %v, error %v", name, *got.Status.ReadyToUse, *got.Status.Error.Message)
		}
	}
}

// A content is deleted by mistake while its snapshot lives, and its class is gone. Catches a room that takes the snapshot with parameters that it guesses, since
// what it takes would be deleted next.
func TestGuessForALivingSnapshot(t *testing.T) {
	h, _ := start(t)
	kit.Edit(h.API, kube.Key{Name: kit.SnapshotClassName}, func(c *snapv1.VolumeSnapshotClass) { c.Parameters = map[string]string{"encrypted": "yes"} })
	kit.Remove[*snapv1.VolumeSnapshotClass](h.API, kube.Key{Name: kit.SnapshotClassName})
	c := bound(h)
	kit.Remove[*kube.Content](h.API, kube.KeyOf(c))
	h.Horizon = 20 * time.Minute
	h.Settle()
	if n := len(h.Driver.Calls("CreateSnapshot")); n != 0 {
		t.Errorf("taken without its class for a living snapshot: %d, %+v\n%s", n, now(h, c).Status, h.Trace())
	}
}

// The same with its secret.
func TestNoSecretForALivingSnapshot(t *testing.T) {
	h, _ := start(t)
	c := bound(h, func(c *kube.Content) {
		kube.SetAnnotation(c, wellknown.AnnSnapshotDeletionSecretName, "missing")
		kube.SetAnnotation(c, wellknown.AnnSnapshotDeletionSecretNamespace, "default")
	})
	kit.Remove[*kube.Content](h.API, kube.KeyOf(c))
	h.Horizon = 20 * time.Minute
	h.Settle()
	if n := len(h.Driver.Calls("CreateSnapshot")); n != 0 {
		t.Errorf("asked without the secret for a living snapshot: %d, %+v\n%s", n, now(h, c).Status, h.Trace())
	}
}

// Catches a room that takes an empty handle in a status for the handle of a snapshot.
func TestEmptyHandle(t *testing.T) {
	h, _ := start(t)
	c := bound(h, func(c *kube.Content) { c.Status = &snapv1.VolumeSnapshotContentStatus{SnapshotHandle: kit.Ptr("")} })
	h.Horizon = 10 * time.Minute
	h.Settle()
	got := now(h, c)
	if got.Status.SnapshotHandle == nil || *got.Status.SnapshotHandle == "" {
		t.Errorf("ready %v without handle", got.Status.ReadyToUse != nil && *got.Status.ReadyToUse)
	}
	deleteBoth(h, c)
	h.Settle()
	if n := snapshotsAt(h); n != 0 || len(kit.All[*kube.Content](h.API)) != 0 {
		t.Errorf("%d left at the driver, objects %v\n%s", n, h.State(), h.Trace())
	}
}

// The UID in the reference is edited while a create has no certain outcome. Catches a room that asks under another name then, and writes that over the one on record.
func TestUIDEditedWhileOpen(t *testing.T) {
	for name, uid := range map[string]string{"cleared": "", "another": "0123"} {
		h, _ := start(t)
		c := bound(h)
		h.Driver.Next("CreateSnapshot", kit.Reply{Code: codes.DeadlineExceeded, Text: "late", Done: true})
		h.Horizon = 0
		h.Settle()
		kit.Edit(h.API, kube.KeyOf(c), func(c *kube.Content) { c.Spec.VolumeSnapshotRef.UID = types.UID(uid) })
		h.Horizon = 10 * time.Minute
		h.Settle()
		deleteBoth(h, c)
		mark(h, c)
		kit.Edit(h.API, kube.Key{Namespace: kit.Namespace, Name: "snap"}, func(s *snapv1.VolumeSnapshot) { s.Finalizers = nil })
		h.Horizon = time.Hour
		h.Settle()
		if n := snapshotsAt(h); n != 0 || len(kit.All[*kube.Content](h.API)) != 0 {
			t.Errorf("%s: %d left at the driver %v, objects %v\n%s\n%s", name, n, h.Driver.Inventory(), len(kit.All[*kube.Content](h.API)), h.Trace(), strings.Join(h.Log.Lines(), "\n"))
		}
	}
}

// Other binders put our finalizer on a content in a second write; both objects are deleted before it, while the driver works. Catches a room that asks for a snapshot
// of whose content nothing will be left.
func TestNoFinalizerYet(t *testing.T) {
	h, _ := start(t)
	var c *kube.Content
	h.Driver.Next("CreateSnapshot", kit.Reply{Meanwhile: func() { deleteBoth(h, c) }})
	c = bound(h, func(c *kube.Content) { c.Finalizers = nil })
	kit.Edit(h.API, kube.Key{Namespace: kit.Namespace, Name: "snap"}, func(s *snapv1.VolumeSnapshot) { s.Finalizers = nil })
	h.Horizon = time.Hour
	h.Settle()
	if n := snapshotsAt(h); n != 0 {
		t.Errorf("%d left at the driver, contents %d", n, len(kit.All[*kube.Content](h.API)))
	}
}

// Somebody has written that a content is ready, for which nothing was ever taken, or while a create has no certain outcome. Catches a room that believes it.
func TestReadyWithoutHandle(t *testing.T) {
	for _, open := range []bool{false, true} {
		h, _ := start(t)
		var c *kube.Content
		if open {
			h.Driver.Next("CreateSnapshot", kit.Reply{Code: codes.DeadlineExceeded, Text: "late", Done: true})
			c = bound(h)
			h.Horizon = 0
			h.Settle()
			kit.Edit(h.API, kube.KeyOf(c), func(c *kube.Content) { c.Status.ReadyToUse = kit.Ptr(true) })
		} else {
			c = bound(h, func(c *kube.Content) { c.Status = &snapv1.VolumeSnapshotContentStatus{ReadyToUse: kit.Ptr(true)} })
		}
		h.Horizon = time.Hour
		h.Settle()
		if got := now(h, c); isReady(got) && !hasHandle(got) {
			t.Errorf("open %v: ready, and nobody knows of what: %v", open, got.Annotations)
		}
		h.Restart()
		live(h)
		deleteBoth(h, c)
		h.Settle()
		if n := snapshotsAt(h); n != 0 || len(kit.All[*kube.Content](h.API)) != 0 {
			t.Errorf("open %v: %d left at the driver", open, n)
		}
	}
}

// A content that is not valid, from before the API server looked at that, is deleted. Catches one that stays Terminating.
func TestInvalidSourceGoes(t *testing.T) {
	for _, both := range []bool{false, true} {
		h, _ := start(t)
		handle := h.Driver.PutSnapshot("x", kit.VolumeHandle("pv"), 1)
		c := bound(h, func(c *kube.Content) {
			if both {
				c.Spec.Source.SnapshotHandle = &handle
			} else {
				c.Spec.Source.VolumeHandle = nil
			}
		})
		deleteBoth(h, c)
		h.Horizon = 2 * time.Hour
		h.Settle()
		if now(h, c) != nil {
			t.Errorf("both %v: still Terminating: %v", both, h.Recorder.Events())
		}
	}
}

// Somebody asks for the next try while a call is under way. Catches a room that forgets it with the end of that call.
func TestHasteDuringACall(t *testing.T) {
	h, _ := start(t)
	var c *kube.Content
	h.Driver.Next("CreateSnapshot", kit.Reply{Code: codes.InvalidArgument, Text: "no", Times: 9})
	asked := time.Time{}
	h.Driver.Next("CreateSnapshot", kit.Reply{Code: codes.InvalidArgument, Text: "no", Meanwhile: func() {
		asked = h.Clock.Now()
		kit.Edit(h.API, kube.KeyOf(c), func(c *kube.Content) { kube.SetAnnotation(c, wellknown.AnnRetry, "1") })
	}})
	at := time.Time{}
	h.Driver.Next("CreateSnapshot", kit.Reply{Meanwhile: func() { at = h.Clock.Now() }})
	c = bound(h)
	h.Horizon = 2 * time.Hour
	h.Settle()
	if waited := at.Sub(asked); waited > time.Second || waited < 0 || asked.IsZero() {
		t.Errorf("waited %v after it was asked for", waited)
	}
}
