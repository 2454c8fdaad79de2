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
)

// acting is a plugin that counts deletions.
type acting struct {
	*plugin
	deleted atomic.Int32
}

func (a *acting) DeleteVolume(context.Context, *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	a.deleted.Add(1)
	return &csi.DeleteVolumeResponse{}, nil
}

// TestOtherDriverGetsNoCalls: another driver listens at the socket. Catches a call for a volume of the first that reaches the second before
// that was asked who it is.
func TestOtherDriverGetsNoCalls(t *testing.T) {
	b := conceive(t, nil)
	b.Setup = func(_ context.Context, e *Env) ([]Runnable, error) {
		return []Runnable{{Name: "room", Needs: Caches(e.Claims()), Run: func(ctx context.Context) error {
			b.journal.add("room works")
			for ctx.Err() == nil {
				_ = e.Calls.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: "of-d.example"})
				time.Sleep(10 * time.Millisecond)
			}
			return nil
		}}}, nil
	}
	stop := b.driver.serve(t, b.socket)
	b.begin()
	b.untilJournal("room works")
	stop()
	second := &acting{plugin: &plugin{name: "e.example", can: b.driver.can}}
	serveActing(t, b.socket, second)
	if err := b.ended(); err == nil || !strings.Contains(err.Error(), "came back as e.example") {
		t.Error("ended with", err)
	}
	if n := second.deleted.Load(); n > 0 {
		t.Errorf("%d deletions of d.example's volumes were sent to e.example", n)
	}
}

func serveActing(t *testing.T, socket string, a *acting) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, a)
	csi.RegisterControllerServer(server, a)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
}
