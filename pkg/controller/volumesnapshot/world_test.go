// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/content"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// binder is the room that binds and works, in a life of the program.
func binder(h *kit.Harness, bind Bind, mods ...func(*Deps)) (*Controller, kit.Room) {
	c, room := standby(h, bind, mods...)
	c.begin()
	return c, room
}

// standby is one that hears of everything, and has not got the lead.
func standby(h *kit.Harness, bind Bind, mods ...func(*Deps)) (*Controller, kit.Room) {
	options := *NewOptions()
	options.Bind = bind
	stance := NewStance(bind, StanceDeps{Client: h.API, Clock: h.Clock, Recorder: h.Recorder, Holder: "me", Namespaces: []string{"kube-system"}})
	driver := kit.DriverName
	if bind == All {
		driver = ""
	}
	deps := Deps{
		Client: h.API, Recorder: h.Recorder, Clock: h.Clock, DriverName: driver,
		Snapshots: h.Stores.Snapshots, Contents: h.Stores.Contents, Classes: h.Stores.SnapshotClasses, Claims: h.Stores.Claims,
		Stance: stance, Workers: 1, RetryStart: time.Second, RetryMax: 5 * time.Minute,
	}
	for _, mod := range mods {
		mod(&deps)
	}
	c := New(options, deps)
	return c, kit.Room{Name: "binder", Reconcile: c.Reconcile,
		Keys: kit.Feeds(kit.On(c.OnSnapshot), kit.On(c.OnContent), kit.On(c.OnClass), kit.On(c.OnClaim))}
}

// taker is the room that speaks to the driver.
func taker(h *kit.Harness, mods ...func(*content.Deps)) kit.Room {
	deps := content.Deps{
		Client: h.API, Driver: h.Driver, DriverName: kit.DriverName, Capabilities: h.Driver.Capabilities, Recorder: h.Recorder, Clock: h.Clock,
		Contents: h.Stores.Contents, Classes: h.Stores.SnapshotClasses, Snapshots: h.Stores.Snapshots,
		Workers: 1, RetryStart: time.Second, RetryMax: 5 * time.Minute,
	}
	for _, mod := range mods {
		mod(&deps)
	}
	c := content.New(*content.NewOptions(), deps)
	return kit.Room{Name: "taker", Reconcile: c.Reconcile, Keys: kit.Feeds(kit.On(c.OnContent), kit.On(c.OnClass), kit.On(c.OnSnapshot))}
}

// both is the whole program.
func both(h *kit.Harness) {
	_, room := binder(h, Own)
	h.Add(room, taker(h))
}

// disk puts a bound claim, its volume and the class into the world.
func disk(h *kit.Harness) {
	claim := kit.Claim("data", kit.BoundTo("pv-data"))
	h.Put(claim, kit.Volume("pv-data", kit.ClaimedBy(claim)), kit.SnapshotClass(kit.SnapshotClassName))
	h.Driver.PutVolume("pv-data", 1<<30)
}

func key(name string) kube.Key { return kube.Key{Namespace: kit.Namespace, Name: name} }

func userTakes(name string, mods ...func(*snapv1.VolumeSnapshot)) func(*kit.Harness) {
	return func(h *kit.Harness) { h.Put(kit.Snapshot(name, "data", mods...)) }
}

func userDeletes(name string) func(*kit.Harness) {
	return func(h *kit.Harness) { kit.Remove[*snapv1.VolumeSnapshot](h.API, key(name)) }
}

func snap(t testing.TB, h *kit.Harness, name string) *snapv1.VolumeSnapshot {
	t.Helper()
	s, ok := kit.Read[*snapv1.VolumeSnapshot](h.API, key(name))
	if !ok {
		t.Fatalf("snapshot %s is not there", name)
	}
	return s
}

// wantReady: ready on both sides, protected, and the claim free.
func wantReady(name string) func(testing.TB, *kit.Harness) {
	return func(t testing.TB, h *kit.Harness) {
		t.Helper()
		s := snap(t, h, name)
		if !isReady(s) || s.Status.Error != nil || s.Status.CreationTime == nil {
			t.Errorf("snapshot %s is not ready: %+v\n%s", name, s.Status, h.Trace())
		}
		if claim, ok := kit.Read[*corev1.PersistentVolumeClaim](h.API, key("data")); ok && len(claim.Finalizers) > 0 {
			t.Errorf("claim is still held: %v", claim.Finalizers)
		}
	}
}

// wantNothing: no snapshot, no content, nothing at the driver.
func wantNothing(t testing.TB, h *kit.Harness) {
	t.Helper()
	for _, line := range h.State() {
		if strings.HasPrefix(line, "volumesnapshots ") || strings.HasPrefix(line, "volumesnapshotcontents ") || strings.Contains(line, "driver: snapshot") {
			t.Errorf("left: %s\n%s", line, h.Trace())
		}
	}
	if claim, ok := kit.Read[*corev1.PersistentVolumeClaim](h.API, key("data")); ok && len(claim.Finalizers) > 0 {
		t.Errorf("claim is still held: %v", claim.Finalizers)
	}
}

// effects are the writes and driver calls since the last Clear, events apart.
func effects(h *kit.Harness) (lines []string) {
	for _, line := range h.Log.Lines() {
		if !strings.HasPrefix(line, "event ") {
			lines = append(lines, line)
		}
	}
	return lines
}

func wantEvents(t testing.TB, h *kit.Harness, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, slices.Concat(h.Recorder.Events())); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// full asks for the long form of tests that are shortened otherwise.
func full() bool { return os.Getenv("CSI_TANDEM_FULL") == "1" }
