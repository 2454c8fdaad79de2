// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"sync"
	"time"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
)

// guard holds calls back that could reach another driver than they are meant for. gRPC connects again by itself, and who listens at the socket
// by then may be somebody else, to whom the ids of the first mean other volumes, or none: then a deletion would be answered with success. So
// after each loss of the connection the driver has to say first that it is still the one that it was.
//
// It is a credential of the call because gRPC asks for those when a call has a connection, and not before: what waits for one is held back too.
type guard struct {
	losses func() int64

	mu    sync.Mutex
	first *Identity
	// met is how often the connection had been lost when the driver was last asked who it is, and was the same.
	met int64
	// news is closed when it has said so.
	news chan struct{}
}

func newGuard(losses func() int64) *guard { return &guard{losses: losses, news: make(chan struct{})} }

// meet takes in who the driver is, as it has said after so many losses.
func (g *guard) meet(who Identity, losses int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.first == nil {
		g.first = &who
	}
	if g.first.Name != who.Name || !g.first.Capabilities.Equal(who.Capabilities) {
		return
	}
	g.met = losses
	close(g.news)
	g.news = make(chan struct{})
}

// holdFor is how long a call is held back at most: what was decided before it holds for no longer.
const holdFor = time.Second

// GetRequestMetadata implements credentials.PerRPCCredentials: it adds nothing, and returns when the call may go.
func (g *guard) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	held, cancel := context.WithTimeout(ctx, holdFor)
	defer cancel()
	for {
		g.mu.Lock()
		known, news := g.met == g.losses(), g.news
		g.mu.Unlock()
		if known {
			return nil, nil
		}
		select {
		case <-news:
		case <-held.Done():
			return nil, fault.Unreached("the connection was lost, and the driver has not said since who it is")
		}
	}
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (*guard) RequireTransportSecurity() bool { return false }
