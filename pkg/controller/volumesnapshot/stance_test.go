// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"context"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

func lease(holder string, renewed time.Time) *coordinationv1.Lease {
	at := metav1.NewMicroTime(renewed)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: wellknown.BinderLease},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &at, LeaseDurationSeconds: kit.Ptr(int32(15))},
	}
}

func TestExplicitChoiceIsObeyed(t *testing.T) {
	h := kit.New(t)
	h.Put(lease("rival", h.Clock.Now()))
	for bind, want := range map[Bind]struct {
		scope snapshot.Scope
		takes bool
	}{Own: {snapshot.Own, true}, All: {snapshot.All, true}, None: {snapshot.Own, false}, Auto: {snapshot.Own, false}} {
		s := NewStance(bind, StanceDeps{Client: h.API, Clock: h.Clock, Recorder: h.Recorder, Holder: "me", Namespaces: []string{"kube-system"}})
		s.Look(h.Ctx)
		if scope, takes := s.Scope(); scope != want.scope || takes != want.takes {
			t.Errorf("%s: %v %v", bind, scope, takes)
		}
	}
}

func TestSignsOfAnotherBinder(t *testing.T) {
	may := true
	for _, c := range []struct {
		name  string
		world func(h *kit.Harness, s *Stance)
		why   string
	}{
		{"nobody", func(*kit.Harness, *Stance) {}, ""},
		{"a fresh lease", func(h *kit.Harness, _ *Stance) { h.Put(lease("rival", h.Clock.Now())) }, "lease kube-system/snapshot-controller-leader is held by rival"},
		{"an old lease", func(h *kit.Harness, _ *Stance) { h.Put(lease("rival", h.Clock.Now().Add(-time.Minute))) }, ""},
		{"a lease that was given back", func(h *kit.Harness, _ *Stance) { h.Put(lease("", h.Clock.Now())) }, ""},
		{"our own lease", func(h *kit.Harness, _ *Stance) { h.Put(lease("me", h.Clock.Now())) }, ""},
		{"a lease that we may not see", func(h *kit.Harness, _ *Stance) { h.API.Deny("get", "leases") }, ""},
		{"no rights", func(*kit.Harness, *Stance) { may = false }, "no right to write VolumeSnapshots"},
		{"B087 a rival writes now", func(h *kit.Harness, s *Stance) {
			s.look(managed("snapshot-controller", h.Clock.Now().Add(time.Second)))
		},
			"another program writes the status of snapshots of the own driver"},
		{"one that wrote before us", func(h *kit.Harness, s *Stance) {
			s.look(managed("snapshot-controller", h.Clock.Now().Add(-time.Second)))
		}, ""},
		{"ourselves", func(h *kit.Harness, s *Stance) {
			s.look(managed("snapshot-controller-tandem", h.Clock.Now().Add(time.Second)))
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			may = true
			s := NewStance(Auto, StanceDeps{Client: h.API, Clock: h.Clock, Recorder: h.Recorder, Holder: "me", Namespaces: []string{"default", "kube-system"},
				Manager: "snapshot-controller-tandem", MayBind: func(context.Context) bool { return may }})
			c.world(h, s)
			s.Look(h.Ctx)
			if s.Why() != c.why {
				t.Errorf("got %q, want %q", s.Why(), c.why)
			}
			if _, takes := s.Scope(); takes != (c.why == "") {
				t.Errorf("takes part: %v", takes)
			}
		})
	}
}

// TestWhoMayNotBindSaysSo: catches a log that sends people to look for another binder, and to a choice that changes nothing without
// the right.
func TestWhoMayNotBindSaysSo(t *testing.T) {
	for may, want := range map[bool]string{false: "grant the rights as deploy/pair/binding.yaml does", true: "--bind-snapshots=own overrules this"} {
		h := kit.New(t)
		h.Put(lease("rival", h.Clock.Now()))
		var told strings.Builder
		ctx := klog.NewContext(h.Ctx, funcr.New(func(_, args string) { told.WriteString(args) }, funcr.Options{}))
		NewStance(Auto, StanceDeps{Client: h.API, Clock: h.Clock, Recorder: h.Recorder, Holder: "me", Namespaces: []string{"kube-system"},
			MayBind: func(context.Context) bool { return may }}).Look(ctx)
		if !strings.Contains(told.String(), want) {
			t.Errorf("may bind: %v, told %q, want %q", may, told.String(), want)
		}
	}
}

func managed(manager string, at time.Time) *snapv1.VolumeSnapshot {
	s := kit.Snapshot("snap", "data")
	s.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: manager, Subresource: "status", Time: kit.Ptr(metav1.NewTime(at))}}
	return s
}

func TestStandsBackAndComesBack(t *testing.T) {
	h := kit.New(t)
	disk(h)
	h.Put(lease("rival", h.Clock.Now()))
	c, room := binder(h, Auto)
	registry := prometheus.NewRegistry()
	registry.MustRegister(c.Stance.aside)
	c.Stance.Look(h.Ctx)
	h.Add(room, taker(h))
	userTakes("snap")(h)
	h.Settle()
	if got := effects(h); len(got) > 0 || gauge(t, registry, "csi_tandem_snapshot_binding_aside") != 1 {
		t.Errorf("a rival binds, and we did %v", got)
	}
	if events := h.Recorder.Events(); len(events) != 1 || !strings.HasPrefix(events[0], "Normal SnapshotBindingLeftToOthers ") {
		t.Errorf("events %v", events)
	}
	back := 0
	stop := c.Stance.onChange(func() { back++ })
	h.Clock.Step(time.Minute)
	c.Stance.Look(h.Ctx)
	c.Stance.Look(h.Ctx)
	if back != 1 || gauge(t, registry, "csi_tandem_snapshot_binding_aside") != 0 {
		t.Fatalf("called back %d times", back)
	}
	stop()
	h.Enqueue("binder", keyOf(kit.Snapshot("snap", "data")))
	h.Settle()
	wantReady("snap")(t, h)
}

func gauge(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

func TestOptions(t *testing.T) {
	o := NewOptions()
	fs := flag.NewFlagSet("x", flag.ContinueOnError)
	o.AddFlags(fs)
	if o.Bind != Auto || !o.PreventVolumeModeConversion || o.Validate() != nil {
		t.Errorf("defaults %+v", o)
	}
	if err := fs.Parse([]string{"--bind-snapshots=all", "--prevent-volume-mode-conversion=false"}); err != nil {
		t.Fatal(err)
	}
	if o.Bind != All || o.PreventVolumeModeConversion || o.Validate() != nil {
		t.Errorf("parsed %+v", o)
	}
	if all, own := All.Lease("a.b/c"), Own.Lease("a.b/c"); all != "snapshot-controller-leader" || own != "snapshot-controller-leader-a-b-c" {
		t.Errorf("leases %s, %s", all, own)
	}
	o.Bind = "some"
	if o.Validate() == nil {
		t.Error("a value that means nothing")
	}
}

func TestMetersFollowALife(t *testing.T) {
	h := kit.New(t)
	disk(h)
	registry := prometheus.NewRegistry()
	c, room := binder(h, Own)
	c.meters = newMeters(registry, h.Clock)
	h.Add(room, taker(h))
	h.Driver.ReadyAfter = 3
	userTakes("snap")(h)
	h.Settle()
	userDeletes("snap")(h)
	h.Settle()
	h.Driver.Next("CreateSnapshot", kit.Reply{Code: 3, Times: 1000})
	h.Horizon = 10 * time.Second
	userTakes("bad")(h)
	h.Settle()
	if got := gauge(t, registry, "snapshot_controller_operations_in_flight"); got != 2 {
		t.Errorf("S98 in flight %v, want the two creations", got)
	}
	userDeletes("bad")(h)
	h.Settle()
	if got := gauge(t, registry, "snapshot_controller_operations_in_flight"); got != 0 {
		t.Errorf("S98 in flight %v", got)
	}
	counts := map[string]uint64{}
	families, _ := registry.Gather()
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if h := m.GetHistogram(); h != nil {
				counts[labels["operation_name"]+" "+labels["operation_status"]+" "+labels["snapshot_type"]+" "+labels["driver_name"]] = h.GetSampleCount()
			}
		}
	}
	for _, want := range []struct {
		labels string
		n      uint64
	}{
		{"CreateSnapshot success", 1}, {"CreateSnapshotAndReady success", 1}, {"DeleteSnapshot success", 2},
		{"CreateSnapshot cancel", 1}, {"CreateSnapshotAndReady cancel", 1},
	} {
		if got := counts[want.labels+" dynamic "+kit.DriverName]; got != want.n {
			t.Errorf("S98 %s: %d, want %d; all: %v", want.labels, got, want.n, counts)
		}
	}
}
