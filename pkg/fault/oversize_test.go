// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
)

// maker makes a volume that it describes in many words, and counts how often.
type maker struct {
	csi.UnimplementedControllerServer
	made atomic.Int32
}

func (m *maker) CreateVolume(context.Context, *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	m.made.Add(1)
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: strings.Repeat("v", 5<<20)}}, nil
}

// TestTooLargeSaysNothingOfTheVolume: gRPC has the same words for a request that it never sent, for an answer that the driver's side did not
// send, and for one that this side did not take; in two of the three the volume is there. Catches a classification that takes "trying to send"
// for a request that stayed here: the volume would be forgotten. This side's own bound is 2 GiB, so that it is the driver's side that says so.
func TestTooLargeSaysNothingOfTheVolume(t *testing.T) {
	const sending, receiving = "trying to send message larger than max", "received message larger than max"
	for title, c := range map[string]struct {
		server grpc.ServerOption
		call   []grpc.CallOption
		size   int
		text   string
		made   int32
	}{
		"the driver does not send its answer": {grpc.MaxSendMsgSize(1 << 20), nil, 1, sending, 1},
		"the answer is not taken here":        {grpc.MaxSendMsgSize(9 << 20), nil, 1, receiving, 1},
		"the driver does not take a request":  {grpc.MaxRecvMsgSize(1 << 20), nil, 2 << 20, receiving, 0},
		"a request that a bound keeps here":   {grpc.MaxRecvMsgSize(1 << 20), []grpc.CallOption{grpc.MaxCallSendMsgSize(1 << 10)}, 2 << 10, sending, 0},
		"none does by itself":                 {grpc.MaxRecvMsgSize(1 << 20), nil, 8 << 20, receiving, 0},
	} {
		t.Run(title, func(t *testing.T) {
			driver, err := &maker{}, error(nil)
			listener, server := bufconn.Listen(1<<20), grpc.NewServer(c.server)
			csi.RegisterControllerServer(server, driver)
			ended := make(chan struct{})
			go func() { defer close(ended); _ = server.Serve(listener) }()
			conn, err := grpc.NewClient("passthrough:///driver", grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
			if err != nil {
				t.Fatal(err)
			}
			_, err = csi.NewControllerClient(conn).CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: strings.Repeat("n", c.size)}, c.call...)
			server.Stop()
			<-ended
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
			if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), c.text) || driver.made.Load() != c.made {
				t.Errorf("made %d, said %v", driver.made.Load(), err)
			}
			if failure := New(CreateVolume, err); failure.Class != Uncertain || !ProvesNothing(failure) || !IsVague(failure) {
				t.Errorf("%v: %v", failure.Class, failure)
			}
		})
	}
}
