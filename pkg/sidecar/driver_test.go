// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/csi-tandem/csi-tandem/pkg/driver"
)

// plugin is a driver that says who it is and does nothing.
type plugin struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer

	mu       sync.Mutex
	name     string
	unready  bool
	can      []csi.ControllerServiceCapability_RPC_Type
	identify int
}

func (p *plugin) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(!p.unready)}, nil
}

func (p *plugin) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.identify++
	return &csi.GetPluginInfoResponse{Name: p.name, VendorVersion: "1"}, nil
}

func (p *plugin) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{}, nil
}

func (p *plugin) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	answer := &csi.ControllerGetCapabilitiesResponse{}
	for _, c := range p.can {
		answer.Capabilities = append(answer.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: c}},
		})
	}
	return answer, nil
}

func (p *plugin) identified() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.identify
}

func (p *plugin) change(change func(*plugin)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

// serve answers on the socket until stop is called, which may be before the end of the test.
func (p *plugin) serve(t *testing.T, socket string) (stop func()) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, p)
	csi.RegisterControllerServer(server, p)
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	stop = sync.OnceFunc(func() { server.Stop(); <-done })
	t.Cleanup(stop)
	return stop
}

// Who starts a sidecar beside a driver that is not there has to learn that at once, and not after the first timeout.
func TestADriverThatIsNotThereIsTold(t *testing.T) {
	b := conceive(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	absent, present := &heard{}, &heard{}
	if _, err := b.connect(absent.context(ctx)); err == nil {
		t.Fatal("connected to nobody")
	}
	if absent.count("The driver is not there yet") != 1 || absent.count(b.socket) == 0 {
		t.Errorf("logged %q", absent.lines)
	}
	// What the library says of each try is only that its time is over.
	short, end := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer end()
	if _, err := dial(short, driver.Options{Address: b.socket}); err == nil || !strings.Contains(err.Error(), "waiting for its socket "+b.socket+": dial unix") {
		t.Errorf("why it waits: %v", err)
	}
	defer b.driver.serve(t, b.socket)()
	k, err := b.connect(present.context(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	k.close()
	if present.count("not there") != 0 {
		t.Error("a driver that is there is said not to be")
	}
}
