// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/csi-tandem/csi-tandem/pkg/driver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is a driver that answers what its fields say.
type server struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedNodeServer

	socket string
	grpc   *grpc.Server
	done   chan struct{}

	mu       sync.Mutex
	name     string
	notReady int
	probeErr error
	probes   int
	volume   *csi.Volume
	snapshot *csi.Snapshot
	err      error
	// hang makes calls wait for their end.
	hang bool
	last any
}

// serve starts a driver on a socket that is removed with the test.
func serve(t *testing.T) *server {
	t.Helper()
	s := &server{socket: filepath.Join(t.TempDir(), "csi.sock"), name: "tandem.csi.example"}
	s.start(t)
	t.Cleanup(s.stop)
	return s
}

func (s *server) start(t *testing.T) {
	t.Helper()
	s.startAs(t, s)
}

// startAs lets another answer for the controller.
func (s *server) startAs(t *testing.T, controller csi.ControllerServer) {
	t.Helper()
	listener, err := net.Listen("unix", s.socket)
	if err != nil {
		t.Fatal(err)
	}
	s.grpc, s.done = grpc.NewServer(), make(chan struct{})
	csi.RegisterIdentityServer(s.grpc, s)
	csi.RegisterControllerServer(s.grpc, controller)
	csi.RegisterNodeServer(s.grpc, s)
	go func(server *grpc.Server, done chan struct{}) {
		defer close(done)
		_ = server.Serve(listener)
	}(s.grpc, s.done)
}

func (s *server) stop() {
	s.grpc.Stop()
	<-s.done
}

func (s *server) change(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// take notes a request and says how it ends.
func (s *server) take(ctx context.Context, request any) error {
	s.mu.Lock()
	s.last = request
	hang, err := s.hang, s.err
	s.mu.Unlock()
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (s *server) request() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

func (s *server) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.probes++
	if s.notReady > 0 {
		s.notReady--
		return &csi.ProbeResponse{Ready: wrapperspb.Bool(false)}, nil
	}
	return &csi.ProbeResponse{}, s.probeErr
}

func (s *server) GetPluginInfo(ctx context.Context, r *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	err := s.take(ctx, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	return &csi.GetPluginInfoResponse{Name: s.name, VendorVersion: "1.2"}, err
}

func (s *server) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{
		{Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE}}},
		{}, // of a newer spec
	}}, nil
}

func (s *server) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: []*csi.ControllerServiceCapability{
		{Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{
			Type: csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		}}},
	}}, nil
}

func (s *server) CreateVolume(ctx context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	err := s.take(ctx, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	return &csi.CreateVolumeResponse{Volume: s.volume}, err
}

func (s *server) DeleteVolume(ctx context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	return &csi.DeleteVolumeResponse{}, s.take(ctx, r)
}

func (s *server) CreateSnapshot(ctx context.Context, r *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	err := s.take(ctx, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	return &csi.CreateSnapshotResponse{Snapshot: s.snapshot}, err
}

func (s *server) DeleteSnapshot(ctx context.Context, r *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	return &csi.DeleteSnapshotResponse{}, s.take(ctx, r)
}

func (s *server) GetSnapshot(ctx context.Context, r *csi.GetSnapshotRequest) (*csi.GetSnapshotResponse, error) {
	err := s.take(ctx, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	return &csi.GetSnapshotResponse{Snapshot: s.snapshot}, err
}

func (s *server) ListSnapshots(ctx context.Context, r *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	return &csi.ListSnapshotsResponse{NextToken: "more"}, s.take(ctx, r)
}

func (s *server) GetCapacity(ctx context.Context, r *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	return &csi.GetCapacityResponse{AvailableCapacity: 42}, s.take(ctx, r)
}

func (s *server) NodeGetInfo(ctx context.Context, r *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: "node-1"}, s.take(ctx, r)
}

// failing is how the driver answers from now on.
func (s *server) failing(code codes.Code, text string) {
	s.change(func() { s.err = status.Error(code, text) })
}

// connect dials the driver; the connection is closed before the driver ends.
func connect(t *testing.T, s *server, options driver.Options) *driver.Conn {
	t.Helper()
	options.Address = s.socket
	if options.Timeout == 0 {
		options.Timeout = time.Minute
	}
	conn, err := driver.Connect(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
