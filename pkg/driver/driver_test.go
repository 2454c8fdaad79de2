// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-tandem/csi-tandem/pkg/driver"
	"github.com/csi-tandem/csi-tandem/pkg/fault"
)

func TestCheckAddress(t *testing.T) {
	for address, want := range map[string]string{
		"/run/csi/socket": "", "unix:///run/csi/socket": "",
		"":                             "must not be empty",
		"run/csi/socket":               "absolute path",
		"unix://csi.sock":              "absolute path",
		"tcp://host:1":                 "absolute path",
		"unix:/csi.sock":               "absolute path",
		"/" + strings.Repeat("a", 106): "", "unix:///" + strings.Repeat("a", 107): "at most 107 bytes, and this has 108",
	} {
		err := driver.CheckAddress(address)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", address, err)
		}
		if err != nil {
			if _, err := driver.Connect(t.Context(), driver.Options{Address: address}); err == nil {
				t.Errorf("%q was dialled", address)
			}
		}
	}
}

func TestIdentify(t *testing.T) {
	s := serve(t)
	metrics := driver.NewMetrics(nil)
	conn := connect(t, s, driver.Options{Metrics: metrics})
	identity, err := conn.Identify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if identity.Name != "tandem.csi.example" || identity.Version != "1.2" || !identity.Capabilities.HasController() ||
		!identity.Capabilities.Has(csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME) ||
		identity.Capabilities.Has(csi.ControllerServiceCapability_RPC_GET_CAPACITY) || identity.Capabilities.HasTopology() {
		t.Errorf("got %+v", identity)
	}
	// From here on the metrics carry the driver's name.
	s.failing(codes.Internal, "no")
	_ = conn.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: "v"})
	families, err := metrics.GetRegistry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, family := range families {
		text += family.String()
	}
	for _, want := range []string{"csi_sidecar_operations_seconds", "tandem.csi.example", "/csi.v1.Controller/DeleteVolume", "Internal"} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %q", want)
		}
	}
}

// TestMigratedMetrics (B073): the calls to a driver that replaces something say whether they were for what is from
// before; what was recorded before its name was known is dropped, since it has other labels.
func TestMigratedMetrics(t *testing.T) {
	s := serve(t)
	recorder := driver.NewMetrics(func(name string) bool { return name == "tandem.csi.example" })
	conn := connect(t, s, driver.Options{Metrics: recorder})
	for range 2 { // also when it comes back
		if _, err := conn.Identify(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	_ = conn.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: "v"})
	_ = conn.DeleteVolume(driver.MarkMigrated(t.Context()), &csi.DeleteVolumeRequest{VolumeId: "v"})
	families, err := recorder.GetRegistry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]uint64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["driver_name"] != "tandem.csi.example" {
				t.Errorf("labels %v", labels)
			}
			if labels["method_name"] == "/csi.v1.Controller/DeleteVolume" {
				got[labels["migrated"]] += m.GetHistogram().GetSampleCount()
			}
		}
	}
	if len(got) != 2 || got["true"] != 1 || got["false"] != 1 {
		t.Errorf("counted %v", got)
	}
}

func TestIdentifyWaitsUntilTheDriverIsReady(t *testing.T) {
	s := serve(t)
	s.notReady = 1
	conn := connect(t, s, driver.Options{})
	if _, err := conn.Identify(t.Context()); err != nil || s.probes != 2 {
		t.Errorf("after %d probes: %v", s.probes, err)
	}
	s.change(func() { s.notReady = 1 << 30 })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := conn.Identify(ctx); err == nil {
		t.Error("a driver that is never ready was identified")
	}
}

func TestIdentifyRefusesWhatIsNoIdentity(t *testing.T) {
	s := serve(t)
	conn := connect(t, s, driver.Options{})
	s.change(func() { s.name = "" })
	if _, err := conn.Identify(t.Context()); err == nil || !strings.Contains(err.Error(), "empty name") {
		t.Errorf("no name: %v", err)
	}
	s.failing(codes.PermissionDenied, "not you")
	if _, err := conn.Identify(t.Context()); fault.Of(err) == nil || fault.Of(err).Code != codes.PermissionDenied {
		t.Errorf("no answer: %v", err)
	}
	s.change(func() { s.probeErr = status.Error(codes.FailedPrecondition, "no license") })
	if _, err := conn.Identify(t.Context()); err == nil || !strings.Contains(err.Error(), "no license") {
		t.Errorf("a hard error of the probe: %v", err)
	}
}

// eventually waits for another goroutine; how long it takes is not what is tested.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not in 30 s", what)
		}
	}
}

func TestReconnect(t *testing.T) {
	s := serve(t)
	var lost atomic.Int64
	conn := connect(t, s, driver.Options{Lost: func() { lost.Add(1) }})
	if !conn.IsConnected() || conn.Losses() != 0 {
		t.Fatalf("connected %v, losses %d", conn.IsConnected(), conn.Losses())
	}
	for round := int64(1); round <= 2; round++ {
		s.stop()
		eventually(t, "the loss", func() bool { return !conn.IsConnected() })
		err := conn.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: "v"})
		if failure := fault.Of(err); failure == nil || failure.Code != codes.Unavailable || !fault.IsBusy(err) {
			t.Errorf("a call without driver: %v", err)
		}
		waiting := make(chan error, 1)
		go func() { waiting <- conn.WaitConnected(t.Context()) }()
		s.start(t)
		if err := <-waiting; err != nil {
			t.Fatal(err)
		}
		if conn.Losses() != round || lost.Load() != round {
			t.Errorf("round %d: %d losses, %d told", round, conn.Losses(), lost.Load())
		}
		deleted := make(chan error, 1)
		go func() { deleted <- conn.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: "v"}) }()
		if _, err := conn.Identify(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-deleted; err != nil {
			t.Errorf("after the driver came back: %v", err)
		}
	}
}

func TestWaitingForADriverEnds(t *testing.T) {
	s := serve(t)
	conn := connect(t, s, driver.Options{})
	s.stop()
	eventually(t, "the loss", func() bool { return !conn.IsConnected() })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if err := conn.WaitConnected(ctx); err == nil {
		t.Error("connected to nothing")
	}
	s.start(t) // for the clean-up

	missing := driver.Options{Address: filepath.Join(t.TempDir(), "none.sock"), Timeout: time.Second}
	if _, err := driver.Connect(ctx, missing); err == nil || !strings.Contains(err.Error(), missing.Address) {
		t.Errorf("dialling nothing: %v", err)
	}
}
