// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

func TestCallsPassUnchanged(t *testing.T) {
	b := newDriverBench(t)
	var header, trailer metadata.MD
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-asked", "a")
	big := strings.Repeat("ü", 1<<20)
	answer, err := b.controller.CreateVolume(ctx,
		&csi.CreateVolumeRequest{Name: "v", Parameters: map[string]string{"big": big}}, grpc.Header(&header), grpc.Trailer(&trailer))
	if err != nil {
		t.Fatal(err)
	}
	if answer.GetVolume().GetVolumeId() != "id-v" || answer.GetVolume().GetVolumeContext()["big"] != big {
		t.Errorf("answered %.100v", answer)
	}
	if diff := cmp.Diff([]string{"h", "t"}, append(header.Get("x-head"), trailer.Get("x-tail")...)); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a"}, b.fake.metadata.Get("x-asked")); diff != "" {
		t.Errorf("metadata at the driver (-want +got):\n%s", diff)
	}
	if info, err := b.identity.GetPluginInfo(t.Context(), &csi.GetPluginInfoRequest{}); err != nil || info.GetName() != "fake.example.com" {
		t.Errorf("a call without a body: %v, %v", info, err)
	}
	if _, err := b.controller.ListVolumes(t.Context(), &csi.ListVolumesRequest{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("what the driver does not have: %v", err)
	}
	_, err = b.controller.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: "busy"})
	if refusal := status.Convert(err); refusal.Code() != codes.FailedPrecondition || refusal.Message() != "in use" || len(refusal.Details()) != 1 {
		t.Errorf("an error with details: %v", err)
	}
	var got []string
	for _, c := range b.driver.Calls() {
		got = append(got, c.Service+" "+c.Method+" "+c.Name+" "+c.Code.String())
	}
	want := []string{
		"csi.v1.Controller CreateVolume v OK", "csi.v1.Identity GetPluginInfo  OK",
		"csi.v1.Controller ListVolumes  Unimplemented", "csi.v1.Controller DeleteVolume busy FailedPrecondition",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestStreamsOfAnyServicePass(t *testing.T) {
	b := newDriverBench(t)
	ctx, cancel := context.WithCancel(soon(t))
	defer cancel()
	stream, err := grpc_health_v1.NewHealthClient(b.connection).Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []grpc_health_v1.HealthCheckResponse_ServingStatus{
		grpc_health_v1.HealthCheckResponse_SERVING, grpc_health_v1.HealthCheckResponse_NOT_SERVING, grpc_health_v1.HealthCheckResponse_SERVING,
	} {
		b.fake.health.SetServingStatus("", want)
		if got, err := stream.Recv(); err != nil || got.GetStatus() != want {
			t.Fatalf("received %v, %v, want %v", got, err, want)
		}
	}
}

func TestDeadlineAndCancellationReachTheDriver(t *testing.T) {
	b := newDriverBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := b.controller.ControllerGetCapabilities(ctx, &csi.ControllerGetCapabilitiesRequest{})
		ended <- err
	}()
	<-b.fake.entered
	cancel()
	if err := <-ended; status.Code(err) != codes.Canceled {
		t.Errorf("ended with %v", err)
	}
	<-b.fake.left
}

func TestSocketFollowsTheDriver(t *testing.T) {
	b := newDriverBench(t)
	if err := b.create(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	b.fake.stop()
	awaitSocket(t, b.driver, false)
	if err := b.create(t.Context(), "b"); status.Code(err) != codes.Unavailable {
		t.Errorf("a driver that is gone: %v", err)
	}
	b.fake.start(t)
	awaitSocket(t, b.driver, true)
	connection := dialSocket(t, b.driver.Socket())
	if _, err := csi.NewControllerClient(connection).CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "c"}); err != nil {
		t.Errorf("a driver that is back: %v", err)
	}
	if diff := cmp.Diff([]string{"create a", "create c"}, b.fake.effects()); diff != "" {
		t.Errorf("at the driver (-want +got):\n%s", diff)
	}
}

// awaitSocket does what clients do.
func awaitSocket(t *testing.T, d *Driver, isThere bool) {
	t.Helper()
	ctx := soon(t)
	for {
		connection, err := net.Dial("unix", d.Socket())
		if err == nil {
			_ = connection.Close()
		}
		if (err == nil) == isThere {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("the socket did not come or go as it should: %v", err)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestProxyBeforeADriverThatIsNotThereYet(t *testing.T) {
	dir := shortDir(t)
	d, err := NewDriver(filepath.Join(dir, "d.sock"), filepath.Join(dir, "p.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	awaitSocket(t, d, false)
	fake := &fakeDriver{socket: filepath.Join(dir, "d.sock")}
	fake.start(t)
	defer fake.stop()
	awaitSocket(t, d, true)
	if _, err := csi.NewIdentityClient(dialSocket(t, d.Socket())).GetPluginInfo(t.Context(), &csi.GetPluginInfoRequest{}); err != nil {
		t.Error(err)
	}
}

func TestDownTakesTheSocketAway(t *testing.T) {
	b := newDriverBench(t)
	stuck := make(chan error, 1)
	go func() {
		_, err := b.controller.ControllerGetCapabilities(soon(t), &csi.ControllerGetCapabilitiesRequest{})
		stuck <- err
	}()
	<-b.fake.entered
	if err := b.driver.Down(); err != nil {
		t.Fatal(err)
	}
	if err := <-stuck; status.Code(err) != codes.Unavailable {
		t.Errorf("the call in hand ended with %v", err)
	}
	if _, err := os.Stat(b.driver.Socket()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
	if err := b.create(t.Context(), "a"); status.Code(err) != codes.Unavailable {
		t.Errorf("a call while down: %v", err)
	}
	if err := b.driver.Up(); err != nil {
		t.Fatal(err)
	}
	again := csi.NewControllerClient(dialSocket(t, b.driver.Socket()))
	if _, err := again.CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "b"}); err != nil {
		t.Errorf("a call after coming up: %v", err)
	}
	if diff := cmp.Diff([]string{"create b"}, b.fake.effects()); diff != "" {
		t.Errorf("at the driver (-want +got):\n%s", diff)
	}
}
