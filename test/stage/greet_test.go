// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
)

type greeter struct {
	csi.UnimplementedIdentityServer
	name string
}

func (g greeter) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: g.name}, nil
}

func TestGreet(t *testing.T) {
	serve := func(name string) string {
		socket := filepath.Join(t.TempDir(), "s")
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		csi.RegisterIdentityServer(server, greeter{name: name})
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(server.Stop)
		return "unix://" + socket
	}
	nobody := "unix://" + filepath.Join(t.TempDir(), "nobody")
	for _, tt := range []struct{ name, address, want, says string }{
		{"a driver", serve("d.example"), "d.example", ""},
		{"a driver without a name", serve(""), "", "has no name"},
		{"nobody", nobody, "", nobody},
		{"another scheme", "tcp://127.0.0.1:1", "", "unix:///absolute"},
		{"no scheme", "/run/csi/socket", "", "unix:///absolute"},
		{"a relative path", "unix://run/csi", "", "unix:///absolute"},
		{"nothing", "", "", "unix:///absolute"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			got, err := Greet(ctx, tt.address)
			if got != tt.want || (err == nil) != (tt.want != "") {
				t.Fatalf("got %q, %v", got, err)
			}
			if err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v, want %q in it", err, tt.says)
			}
		})
	}
}
