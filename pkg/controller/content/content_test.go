// SPDX-License-Identifier: Apache-2.0

package content

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// start makes a world with a volume, a class and the room. Snapshots are bound by others, who are played by
// the test.
func start(t *testing.T, mods ...func(*Deps)) (*kit.Harness, *Controller) {
	t.Helper()
	h := kit.New(t)
	h.Put(kit.SnapshotClass(kit.SnapshotClassName))
	h.Driver.PutVolume("pv", 1<<30)
	return h, live(h, mods...)
}

func live(h *kit.Harness, mods ...func(*Deps)) *Controller {
	deps := Deps{
		Client: h.API, Driver: h.Driver, DriverName: kit.DriverName, Capabilities: h.Driver.Capabilities, Recorder: h.Recorder, Clock: h.Clock,
		Contents: h.Stores.Contents, Classes: h.Stores.SnapshotClasses, Snapshots: h.Stores.Snapshots,
		Workers: 1, RetryStart: time.Second, RetryMax: 5 * time.Minute,
	}
	for _, mod := range mods {
		mod(&deps)
	}
	c := New(*NewOptions(), deps)
	h.Add(kit.Room{Name: "taker", Reconcile: c.Reconcile, Keys: kit.Feeds(kit.On(c.OnContent), kit.On(c.OnClass), kit.On(c.OnSnapshot))})
	return c
}

func unseen(d *Deps) { d.Snapshots = nil }

// bound puts a snapshot and its content, as a binder of others makes it.
func bound(h *kit.Harness, mods ...func(*kube.Content)) *kube.Content {
	s := kit.Snapshot("snap", "data", func(s *snapv1.VolumeSnapshot) { s.Finalizers = []string{wellknown.FinalizerSnapshotBound} })
	c := kit.Content(s, kit.VolumeHandle("pv"), append([]func(*kube.Content){func(c *kube.Content) {
		c.Finalizers = []string{wellknown.FinalizerContent}
		c.Spec.VolumeSnapshotClassName = kit.Ptr(kit.SnapshotClassName)
	}}, mods...)...)
	h.Put(s, c)
	return c
}

func now(h *kit.Harness, c *kube.Content) *kube.Content {
	found, _ := kit.Read[*kube.Content](h.API, kube.KeyOf(c))
	return found
}

func verbs(h *kit.Harness) []string {
	var lines []string
	for _, line := range h.Log.Lines() {
		words := strings.Fields(line)
		lines = append(lines, strings.TrimSuffix(words[0]+" "+words[1], ":"))
	}
	return lines
}

// deleteBoth deletes snapshot and content as a binder does, with or without the mark.
func deleteBoth(h *kit.Harness, c *kube.Content) {
	kit.Remove[*snapv1.VolumeSnapshot](h.API, kube.Key{Namespace: kit.Namespace, Name: "snap"})
	kit.Remove[*kube.Content](h.API, kube.KeyOf(c))
}

func mark(h *kit.Harness, c *kube.Content) {
	kit.Edit(h.API, kube.KeyOf(c), func(c *kube.Content) { kube.SetAnnotation(c, wellknown.AnnBeingDeleted, "yes") })
}

func TestContentOfAnotherBinder(t *testing.T) {
	h, _ := start(t, unseen)
	c := bound(h)
	h.Settle()
	want := []string{"patch volumesnapshotcontents", "driver CreateSnapshot", "patch volumesnapshotcontents/status", "patch volumesnapshotcontents"}
	if diff := cmp.Diff(want, verbs(h)); diff != "" {
		t.Errorf("S55 S100 I1 the mark before the call (-want +got):\n%s", diff)
	}
	if got := now(h, c); !*got.Status.ReadyToUse || got.Annotations[wellknown.AnnBeingCreated] != "" || got.Annotations[wellknown.AnnSnapshotParameters] != "{}" {
		t.Errorf("S100 %+v", got)
	}
	h.Log.Clear()
	deleteBoth(h, c)
	h.Settle()
	if got := fmt.Sprint(verbs(h)); got != "[driver DeleteSnapshot patch volumesnapshotcontents]" && got != "[]" {
		t.Errorf("S100 %s", got)
	}
	mark(h, c)
	h.Settle()
	if now(h, c) != nil && now(h, c).Name != "" || len(h.Driver.Inventory()) != 1 {
		t.Errorf("S100 left: %v", h.State())
	}
}

func TestWithoutRightsOnSnapshotsOnlyTheMarkCounts(t *testing.T) {
	h, _ := start(t, unseen)
	c := bound(h)
	h.Settle()
	h.API.Deny("get", "volumesnapshots")
	deleteBoth(h, c)
	h.Settle()
	if len(h.Driver.Calls("DeleteSnapshot")) > 0 {
		t.Fatal("S100 I3 deleted without permission")
	}
	mark(h, c)
	h.Settle()
	if len(h.Driver.Calls("DeleteSnapshot")) != 1 || len(kit.All[*kube.Content](h.API)) > 0 {
		t.Errorf("B009 the mark that came late: %v", h.State())
	}
}

func TestWipedMarksDoNotMatter(t *testing.T) {
	h, _ := start(t)
	c := bound(h)
	wipe := func() { kit.Edit(h.API, kube.KeyOf(c), func(c *kube.Content) { c.Annotations = nil }) }
	h.Driver.Next("CreateSnapshot", kit.Reply{Code: codes.DeadlineExceeded, Done: true, Meanwhile: func() { wipe(); deleteBoth(h, c) }})
	h.Settle()
	if len(kit.All[*kube.Content](h.API)) > 0 || len(h.Driver.Inventory()) != 1 {
		t.Errorf("S83 S84 W2 left: %v\n%s", h.State(), h.Trace())
	}
	if n := len(h.Driver.Calls("DeleteSnapshot")); n != 1 {
		t.Errorf("S80 deletions %d", n)
	}
}

func TestDeletionFollowsAnOpenCreateWithinSeconds(t *testing.T) {
	h, _ := start(t)
	c := bound(h)
	h.Driver.Next("CreateSnapshot", kit.Reply{Code: codes.DeadlineExceeded, Done: true, Times: 6})
	h.Horizon = 40 * time.Second
	h.Settle()
	deleteBoth(h, c)
	h.Horizon = time.Second
	h.Settle()
	if len(kit.All[*kube.Content](h.API)) > 0 {
		t.Errorf("S80 W1 W6 not gone within a second: %v", h.State())
	}
}

func TestFinalErrorLetsGoAtOnce(t *testing.T) {
	h, _ := start(t)
	c := bound(h)
	h.Driver.Next("CreateSnapshot", kit.Reply{Code: codes.InvalidArgument, Times: 100})
	h.Horizon = time.Minute
	h.Settle()
	calls := len(h.Driver.Calls("CreateSnapshot"))
	h.Horizon = time.Second
	deleteBoth(h, c)
	h.Settle()
	if len(kit.All[*kube.Content](h.API)) > 0 || len(h.Driver.Calls("DeleteSnapshot")) > 0 {
		t.Errorf("S81 W6 not gone within a second: %v", h.State())
	}
	if n := len(h.Driver.Calls("CreateSnapshot")); n != calls {
		t.Errorf("S81 asked %d times more", n-calls)
	}
}

func TestPolling(t *testing.T) {
	var get, list = csi.ControllerServiceCapability_RPC_GET_SNAPSHOT, csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS
	for _, c := range []struct {
		name string
		can  []capability.Controller
		want string
	}{
		{"GetSnapshot", []capability.Controller{get, list}, "GetSnapshot"},
		{"ListSnapshots", []capability.Controller{list}, "ListSnapshots"},
		{"S59 CreateSnapshot", nil, "CreateSnapshot"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Driver.Capabilities = capability.Of(nil, c.can...)
			h.Driver.ReadyAfter = 5
			h.Put(kit.SnapshotClass(kit.SnapshotClassName))
			h.Driver.PutVolume("pv", 1<<30)
			live(h)
			content := bound(h)
			h.Settle()
			if got := now(h, content); !*got.Status.ReadyToUse {
				t.Fatalf("%+v", got.Status)
			}
			writes := 0
			for _, line := range verbs(h) {
				if strings.HasPrefix(line, "patch") {
					writes++
				}
			}
			calls := h.Driver.Calls()
			if writes != 4 || len(calls) != 6 || calls[5].Method != c.want {
				t.Errorf("S59 %d writes, want mark, cut, unmark, ready; calls %v", writes, calls)
			}
		})
	}
}

func TestPollingSurvivesErrors(t *testing.T) {
	h, _ := start(t)
	h.Driver.ReadyAfter = 4
	c := bound(h)
	h.Driver.Next("GetSnapshot", kit.Reply{}, kit.Reply{Code: codes.Internal}, kit.Reply{Code: codes.Unavailable})
	h.Driver.Next("ListSnapshots", kit.Reply{Code: codes.Unavailable, Times: 2})
	h.Driver.Next("CreateSnapshot", kit.Reply{}, kit.Reply{Code: codes.Internal}, kit.Reply{Code: codes.Aborted})
	h.Settle()
	if got := now(h, c); got.Status == nil || !*got.Status.ReadyToUse || got.Status.Error != nil {
		t.Errorf("B013 %+v\n%s", got.Status, h.Trace())
	}
}

// A driver that has lost a snapshot before it was ready is not made to take another. Catches a room that asks for it by its name
// then: the other has another id, which no object holds, and stays at the driver for ever.
func TestLostBeforeReady(t *testing.T) {
	h, _ := start(t)
	h.Driver.ReadyAfter = 100
	c := bound(h)
	h.Horizon = 2 * time.Second
	h.Settle()
	handle := *now(h, c).Status.SnapshotHandle
	if err := h.Driver.DeleteSnapshot(t.Context(), &csi.DeleteSnapshotRequest{SnapshotId: handle}); err != nil {
		t.Fatal(err)
	}
	calls := len(h.Driver.Calls("CreateSnapshot"))
	h.Horizon = time.Minute
	h.Settle()
	got := now(h, c)
	if got.Status.Error == nil || *got.Status.ReadyToUse || *got.Status.SnapshotHandle != handle {
		t.Errorf("%+v", got.Status)
	}
	deleteBoth(h, c)
	h.Settle()
	if n := len(h.Driver.Calls("CreateSnapshot")); n != calls || len(kit.All[*kube.Content](h.API)) > 0 {
		t.Errorf("asked %d times more; left: %v", n-calls, h.State())
	}
	for _, stored := range h.Driver.Inventory() {
		if strings.Contains(stored, "snapshot") {
			t.Errorf("at the driver: %v", h.Driver.Inventory())
		}
	}
}

func TestDeletionErrors(t *testing.T) {
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		h, _ := start(t)
		c := bound(h)
		h.Settle()
		h.Driver.Next("DeleteSnapshot", kit.Reply{Code: code, Text: "no", Times: 2})
		deleteBoth(h, c)
		h.Settle()
		told := strings.Count(strings.Join(h.Recorder.Events(), "\n"), "SnapshotDeleteError")
		want := 1
		if code == codes.NotFound {
			want = 0 // B081: gone is gone
		}
		if told != want || len(kit.All[*kube.Content](h.API)) > 0 {
			t.Errorf("S72 B081 %v: told %d times; %v", code, told, h.State())
		}
	}
}

func TestEventsDoNotDefeatBackoff(t *testing.T) {
	h, _ := start(t)
	c := bound(h)
	h.Driver.Next("CreateSnapshot", kit.Reply{Code: codes.FailedPrecondition, Times: 100})
	h.Horizon = 20 * time.Second
	h.Settle()
	before := len(h.Driver.Calls())
	for i := range 5 {
		kit.Edit(h.API, kube.KeyOf(c), func(c *kube.Content) { kube.SetAnnotation(c, "x", fmt.Sprint(i)) })
		h.Horizon = 0
		h.Settle()
	}
	if n := len(h.Driver.Calls()) - before; n > 0 {
		t.Errorf("S66 %d calls too early", n)
	}
}

func TestNeverSentIsLetGo(t *testing.T) {
	h, c := start(t)
	c.begin()
	h.Clock.Step(time.Hour)
	content := bound(h, func(c *kube.Content) {
		c.CreationTimestamp.Time = h.Clock.Now()
		c.Annotations = map[string]string{wellknown.AnnBeingCreated: "yes", wellknown.AnnSnapshotParameters: "{}"}
	})
	deleteBoth(h, content)
	h.Settle()
	if len(h.Driver.Calls()) > 0 || len(kit.All[*kube.Content](h.API)) > 0 {
		t.Errorf("made after our lead began, and never sent: calls %v", h.Driver.Calls())
	}
	c.forget(content.UID)
	old := bound(h, func(c *kube.Content) { c.Annotations = map[string]string{wellknown.AnnBeingCreated: "yes"} })
	deleteBoth(h, old)
	h.Settle()
	if len(h.Driver.Calls("CreateSnapshot")) != 1 || len(h.Driver.Inventory()) != 1 {
		t.Errorf("I2 9.4.7 made before: ask first; calls %v", h.Driver.Calls())
	}
}

func TestMembersAreNotTouched(t *testing.T) {
	h, _ := start(t)
	bound(h, func(c *kube.Content) { c.Annotations = map[string]string{wellknown.AnnGroupSnapshotHandle: "g"} })
	kit.PutJSON[*kube.Content](h.API, `{"metadata":{"name":"static","finalizers":["`+wellknown.FinalizerContent+`"],"annotations":{"`+
		wellknown.AnnBeingDeleted+`":"yes"},"deletionTimestamp":"2026-01-01T12:00:00Z"},"spec":{"driver":"`+kit.DriverName+`","deletionPolicy":"Delete",
		"source":{"snapshotHandle":"m-1"},"volumeSnapshotRef":{"namespace":"default","name":"gone","uid":"u9"}},
		"status":{"snapshotHandle":"m-1","readyToUse":true,"volumeGroupSnapshotHandle":"g-1"}}`)
	h.Settle()
	if len(h.Driver.Calls()) > 0 {
		t.Errorf("S91 calls %v", h.Driver.Calls())
	}
	if contents := kit.All[*kube.Content](h.API); len(contents) != 1 {
		t.Errorf("S91 the finalizer of a member goes: %v", h.State())
	}
}

func TestForeignContentsAreIgnored(t *testing.T) {
	h, _ := start(t)
	bound(h, func(c *kube.Content) { c.Spec.Driver = "other.example" })
	h.Put(kit.SnapshotClass("theirs", func(c *snapv1.VolumeSnapshotClass) { c.Driver = "other.example" }),
		kit.NamedContent("theirs", kit.Taken("x"), func(c *kube.Content) { c.Spec.VolumeSnapshotClassName = kit.Ptr("theirs") }))
	h.Settle()
	if len(h.Log.Lines()) > 0 {
		t.Errorf("S51 %v", h.Log.Lines())
	}
}

func TestLanes(t *testing.T) {
	h, c := start(t)
	h.Put(kit.NamedContent("imported"), kit.NamedContent("going", func(c *kube.Content) { c.Finalizers = []string{"x/y"}; kit.Deleted(c) }))
	fresh := bound(h)
	for name, want := range map[string]string{"imported": "poll " + kit.SnapshotClassName, "going": "delete " + kit.SnapshotClassName, fresh.Name: "create " + kit.SnapshotClassName, "none": "create"} {
		if got := c.lane(reconcile.Key{Name: name}); got != want {
			t.Errorf("W-perf-7 %s: lane %s, want %s", name, got, want)
		}
	}
}

func TestOptions(t *testing.T) {
	o := NewOptions()
	fs := flag.NewFlagSet("x", flag.ContinueOnError)
	o.AddFlags(fs)
	if o.NamePrefix != "snapshot" || o.NameLength != -1 || o.ExtraMetadata || o.Validate() != nil {
		t.Errorf("defaults %+v", o)
	}
	for _, bad := range []string{"--snapshot-name-uuid-length=33", "--snapshot-name-prefix="} {
		o := NewOptions()
		fs := flag.NewFlagSet("x", flag.ContinueOnError)
		o.AddFlags(fs)
		if err := fs.Parse([]string{bad}); err != nil || o.Validate() == nil {
			t.Errorf("S52 W23 %s is taken", bad)
		}
	}
}
