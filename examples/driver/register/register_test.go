// SPDX-License-Identifier: Apache-2.0

package register

import (
	"bytes"
	"context"
	"maps"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// ear is written to by the server's goroutines.
type ear struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (e *ear) Write(data []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.all.Write(data)
}

func (e *ear) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.all.String()
}

func dial(t *testing.T, out *ear) *grpc.ClientConn {
	t.Helper()
	g, err := New(Plugin{Name: "a.example", Endpoint: "/run/csi.sock", Out: out})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	go g.Serve(l)
	t.Cleanup(g.Stop)
	conn, err := grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// The bytes are what a kubelet decodes: the numbers of the fields are the protocol, their names are not.
func TestInfoAsAKubeletReadsIt(t *testing.T) {
	answer := &emptypb.Empty{}
	if err := dial(t, &ear{}).Invoke(t.Context(), "/pluginregistration.Registration/GetInfo", &emptypb.Empty{}, answer); err != nil {
		t.Fatal(err)
	}
	got := map[protowire.Number]string{}
	for rest := []byte(answer.ProtoReflect().GetUnknown()); len(rest) > 0; {
		number, _, tag := protowire.ConsumeTag(rest)
		text, length := protowire.ConsumeString(rest[max(0, tag):])
		if tag < 0 || length < 0 {
			t.Fatalf("this is no message: %q", rest)
		}
		got[number], rest = got[number]+text, rest[tag+length:]
	}
	want := map[protowire.Number]string{1: "CSIPlugin", 2: "a.example", 3: "/run/csi.sock", 4: "1.0.0"}
	if !maps.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStatusIsHeard(t *testing.T) {
	out := &ear{}
	conn := dial(t, out)
	notify := func(ctx context.Context, status any) {
		if err := conn.Invoke(ctx, "/pluginregistration.Registration/NotifyRegistrationStatus", status, &emptypb.Empty{}); err != nil {
			t.Fatal(err)
		}
	}
	// A wrapped bool has the number that the status has for it.
	notify(t.Context(), wrapperspb.Bool(true))
	if !strings.Contains(out.String(), "has registered a.example at /run/csi.sock") {
		t.Errorf("said %q", out.String())
	}
	refused := &emptypb.Empty{}
	refused.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 2, protowire.BytesType), "no such version"))
	notify(t.Context(), refused)
	if !strings.Contains(out.String(), "has refused a.example at /run/csi.sock: no such version") {
		t.Errorf("said %q", out.String())
	}
}
