// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// placed is a driver that also says where it runs, or does not.
type placed struct {
	csi.UnimplementedNodeServer
	*plugin
	silent bool
	asked  atomic.Int32
}

func (p *placed) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	p.asked.Add(1)
	if p.silent {
		return nil, status.Error(codes.Unavailable, "not yet")
	}
	return &csi.NodeGetInfoResponse{NodeId: "n", AccessibleTopology: &csi.Topology{Segments: map[string]string{"zone": "a"}}}, nil
}

func (p *placed) serveAt(t *testing.T, socket string) (stop func()) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, p.plugin)
	csi.RegisterControllerServer(server, p.plugin)
	csi.RegisterNodeServer(server, p)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return server.Stop
}

// TestDriverThatChangesBeforeItSaysWhereItRuns: whoever answers at the socket is identified after each loss of the connection, also after
// one that falls between the name of the driver and its place. Catches a process that serves a driver under the name and with the capabilities
// of another one for as long as the connection stands.
func TestDriverThatChangesBeforeItSaysWhereItRuns(t *testing.T) {
	t.Setenv(nodeVariable, "n")
	b := conceive(t, func(p *Program) { p.AsksPlace = true })
	b.node = "n"
	volumes := []csi.ControllerServiceCapability_RPC_Type{csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME}
	first := &placed{plugin: &plugin{name: "d.example", can: volumes}, silent: true}
	stop := first.serveAt(t, b.socket)
	b.begin()
	until(t, "the driver is identified, and asked where it runs", func() bool { return first.asked.Load() > 0 })
	stop()
	second := &placed{plugin: &plugin{name: "e.example", can: volumes}}
	second.serveAt(t, b.socket)
	b.untilJournal("room works")
	select {
	case err := <-b.result:
		close(b.result)
		if err == nil || !strings.Contains(err.Error(), "came back as e.example") {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Errorf("works for %q, while e.example is at the socket; it was asked %d times for its name", "d.example", second.identified())
	}
}
