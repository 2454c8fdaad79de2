// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/csi-tandem/csi-tandem/examples/driver/backend"
	"github.com/csi-tandem/csi-tandem/examples/driver/control"
	"github.com/csi-tandem/csi-tandem/examples/driver/mount"
	"github.com/csi-tandem/csi-tandem/examples/driver/script"
	"github.com/csi-tandem/csi-tandem/examples/driver/server"
)

const mib = int64(1) << 20

// rig is a driver behind its two sockets.
type rig struct {
	csi.IdentityClient
	csi.ControllerClient
	csi.NodeClient
	control *control.Client
	dir     string
	ctx     context.Context
}

func start(t *testing.T, edit func(*server.Options)) *rig {
	t.Helper()
	// A short path: the length of a socket's is limited.
	dir, err := os.MkdirTemp("", "d")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	b, err := backend.Open(backend.Options{Dir: filepath.Join(dir, "state"), Now: time.Now, Pools: []backend.Pool{
		{Segment: backend.Segment{"zone": "a"}, Capacity: 100 * mib},
		{Segment: backend.Segment{"zone": "b"}, Capacity: 50 * mib},
	}})
	must(t, err)
	o := server.Options{
		Name: "driver.example", Version: "1", Node: "node1",
		Topology: map[string]backend.Segment{"node1": {"zone": "a"}, "node2": {"zone": "b"}},
		Features: server.AllFeatures(), Backend: b, Mount: mount.Link,
		Script: script.New(time.Now, func() { t.Error("crashed") }), Log: script.NewLog(time.Now, 100),
	}
	edit(&o)
	services, err := server.New(o)
	must(t, err)
	h := control.NewServer(control.Parts{Backend: b, Script: o.Script, Log: o.Log, Crash: func() {}})
	// Listening before anybody dials: a refused connection costs a second.
	for path, serve := range map[string]func(net.Listener) error{"csi": services.Serve, "ctl": h.Serve} {
		l, err := net.Listen("unix", filepath.Join(dir, path))
		must(t, err)
		go func() { _ = serve(l) }()
	}
	conn, err := grpc.NewClient("unix://"+filepath.Join(dir, "csi"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	client, err := control.Dial("unix://" + filepath.Join(dir, "ctl"))
	must(t, err)
	t.Cleanup(func() {
		o.Script.Reset()
		_ = conn.Close()
		services.Stop()
		_ = h.Close()
		_ = b.Close()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return &rig{csi.NewIdentityClient(conn), csi.NewControllerClient(conn), csi.NewNodeClient(conn), client, dir, ctx}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t *testing.T, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Fatalf("got %v (%v), want %v", got, err, want)
	}
}

var filesystem = &csi.VolumeCapability{
	AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
	AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
}

func ask(name string, size int64) *csi.CreateVolumeRequest {
	return &csi.CreateVolumeRequest{
		Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: size},
		VolumeCapabilities: []*csi.VolumeCapability{filesystem},
	}
}

func (r *rig) volume(t *testing.T, req *csi.CreateVolumeRequest) *csi.Volume {
	t.Helper()
	resp, err := r.CreateVolume(r.ctx, req)
	must(t, err)
	return resp.GetVolume()
}

func (r *rig) snapshot(t *testing.T, name, of string) *csi.Snapshot {
	t.Helper()
	resp, err := r.CreateSnapshot(r.ctx, &csi.CreateSnapshotRequest{Name: name, SourceVolumeId: of})
	must(t, err)
	return resp.GetSnapshot()
}

func (r *rig) inventory(t *testing.T) control.Inventory {
	t.Helper()
	all, err := r.control.Inventory(r.ctx)
	must(t, err)
	return all
}
