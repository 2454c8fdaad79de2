// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// fakeDriver creates and deletes names, and has a service beside CSI that streams.
type fakeDriver struct {
	csi.UnimplementedControllerServer
	csi.UnimplementedIdentityServer

	socket string
	health *health.Server
	// ControllerGetCapabilities waits for the end of its call, and tells of both.
	entered, left chan struct{}

	mu       sync.Mutex
	server   *grpc.Server
	done     []string
	metadata metadata.MD
}

func newFakeDriver(t *testing.T) *fakeDriver {
	t.Helper()
	f := &fakeDriver{socket: filepath.Join(shortDir(t), "d.sock"), entered: make(chan struct{}, 10), left: make(chan struct{}, 10)}
	f.start(t)
	t.Cleanup(f.stop)
	return f
}

// shortDir is a folder whose paths leave room for a socket's name.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "proxy-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (f *fakeDriver) start(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("unix", f.socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	csi.RegisterControllerServer(server, f)
	csi.RegisterIdentityServer(server, f)
	f.health = health.NewServer()
	grpc_health_v1.RegisterHealthServer(server, f.health)
	f.mu.Lock()
	f.server = server
	f.mu.Unlock()
	go func() { _ = server.Serve(listener) }()
}

func (f *fakeDriver) stop() {
	f.mu.Lock()
	server := f.server
	f.mu.Unlock()
	server.Stop()
}

func (f *fakeDriver) effects() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.done...)
}

func (f *fakeDriver) note(effect string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = append(f.done, effect)
}

func (f *fakeDriver) CreateVolume(ctx context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	f.note("create " + r.GetName())
	f.mu.Lock()
	f.metadata, _ = metadata.FromIncomingContext(ctx)
	f.mu.Unlock()
	_ = grpc.SetHeader(ctx, metadata.Pairs("x-head", "h"))
	_ = grpc.SetTrailer(ctx, metadata.Pairs("x-tail", "t"))
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: "id-" + r.GetName(), VolumeContext: r.GetParameters()}}, nil
}

func (f *fakeDriver) DeleteVolume(_ context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	if r.GetVolumeId() == "busy" {
		refusal, err := status.New(codes.FailedPrecondition, "in use").WithDetails(&csi.Volume{VolumeId: "busy"})
		if err != nil {
			return nil, err
		}
		return nil, refusal.Err()
	}
	f.note("delete " + r.GetVolumeId())
	return &csi.DeleteVolumeResponse{}, nil
}

func (f *fakeDriver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: "fake.example.com"}, nil
}

func (f *fakeDriver) ControllerGetCapabilities(ctx context.Context, _ *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	f.entered <- struct{}{}
	<-ctx.Done()
	f.left <- struct{}{}
	return nil, status.FromContextError(ctx.Err()).Err()
}

// driverBench is a small driver with the proxy before it, and a client.
type driverBench struct {
	fake       *fakeDriver
	driver     *Driver
	connection *grpc.ClientConn
	controller csi.ControllerClient
	identity   csi.IdentityClient
}

func newDriverBench(t *testing.T) *driverBench {
	t.Helper()
	b := &driverBench{fake: newFakeDriver(t)}
	var err error
	if b.driver, err = NewDriver(b.fake.socket, filepath.Join(shortDir(t), "p.sock")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.driver.Close(); err != nil {
			t.Error(err)
		}
	})
	b.connection = dialSocket(t, b.driver.Socket())
	b.controller, b.identity = csi.NewControllerClient(b.connection), csi.NewIdentityClient(b.connection)
	return b
}

func dialSocket(t *testing.T, socket string) *grpc.ClientConn {
	t.Helper()
	connection, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

func (b *driverBench) create(ctx context.Context, name string) error {
	_, err := b.controller.CreateVolume(ctx, &csi.CreateVolumeRequest{Name: name})
	return err
}
