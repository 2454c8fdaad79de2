// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
)

type nodeDriver struct {
	*placed
	deleted atomic.Int32
}

func (d *nodeDriver) DeleteVolume(context.Context, *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	d.deleted.Add(1)
	return &csi.DeleteVolumeResponse{}, nil
}

func (d *nodeDriver) serveAt(t *testing.T, socket string) func() {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, d.plugin)
	csi.RegisterControllerServer(server, nodeController{d.plugin, d})
	csi.RegisterNodeServer(server, d)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return server.Stop
}

type nodeController struct {
	csi.ControllerServer
	d *nodeDriver
}

func (c nodeController) DeleteVolume(ctx context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	return c.d.DeleteVolume(ctx, r)
}

// The driver of a node is lost while it is asked where it runs. Catches calls that are held back until it says so.
func TestLostWhileAskedForItsPlace(t *testing.T) {
	t.Setenv(nodeVariable, "n")
	b := conceive(t, func(p *Program) { p.AsksPlace = true })
	b.node = "n"
	b.Setup = func(_ context.Context, e *Env) ([]Runnable, error) {
		return []Runnable{{Name: "room", Needs: Caches(e.Claims()), Run: func(ctx context.Context) error {
			b.journal.add("room works")
			for ctx.Err() == nil {
				_ = e.Calls.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: "v"})
				time.Sleep(10 * time.Millisecond)
			}
			return nil
		}}}, nil
	}
	volumes := []csi.ControllerServiceCapability_RPC_Type{csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME}
	fresh := func(silent bool) *nodeDriver {
		return &nodeDriver{placed: &placed{plugin: &plugin{name: "d.example", can: volumes}, silent: silent}}
	}
	first := fresh(false)
	stop := first.serveAt(t, b.socket)
	b.begin()
	b.untilJournal("room works")
	until(t, "a call of the first", func() bool { return first.deleted.Load() > 0 })
	stop()
	second := fresh(true)
	stop = second.serveAt(t, b.socket)
	until(t, "it is asked where it runs", func() bool { return second.asked.Load() > 0 })
	until(t, "a call of the second", func() bool { return second.deleted.Load() > 0 })
	stop()
	third := fresh(true)
	third.serveAt(t, b.socket)
	until(t, "a call of the third", func() bool { return third.deleted.Load() > 0 })
	b.end()
}
