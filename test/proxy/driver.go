// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// dialTimeout is long for a local socket, so that it only ends what will never be answered.
const dialTimeout = 5 * time.Second

// Driver is a proxy before the socket of a driver. Its own socket is there while the driver's is: when the driver dies,
// connections break and the socket is gone until it is back, as if nobody stood between.
type Driver struct {
	rules[CallMatch, Call, Failure]

	socket   string
	target   string
	gate     *gate
	server   *grpc.Server
	upstream *grpc.ClientConn
	journal  *journal[Call]

	life    context.Context
	end     context.CancelFunc
	serving sync.WaitGroup
	close   sync.Once

	mu      sync.Mutex
	counter *Counter
	client  string
	// The gate is open if the test wants it and calls can reach the driver.
	isWanted bool
	isReady  bool
	// current is the connection to the driver.
	current *upstreamConn
}

// NewDriver starts a proxy on a socket before the socket of a driver, which need not be there yet. It runs until Close.
func NewDriver(upstream, socket string) (*Driver, error) {
	d := &Driver{
		socket: socket, target: upstream, journal: newJournal[Call](), counter: NewCounter(), client: "client", isWanted: true,
	}
	d.gate = newGate(&net.UnixAddr{Name: socket, Net: "unix"}, func() (net.Listener, error) { return net.Listen("unix", socket) })
	d.server = grpc.NewServer(
		grpc.ForceServerCodecV2(rawCodec{}), grpc.UnknownServiceHandler(d.pass), grpc.Creds(connCredentials{insecure.NewCredentials()}),
		grpc.MaxRecvMsgSize(math.MaxInt32), grpc.MaxSendMsgSize(math.MaxInt32), grpc.WaitForHandlers(true),
	)
	var err error
	d.upstream, err = grpc.NewClient("passthrough:///"+upstream,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(d.dial), grpc.WithIdleTimeout(0),
		grpc.WithConnectParams(grpc.ConnectParams{
			// A driver that comes back is to be seen at once.
			Backoff:           backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1.2, MaxDelay: 50 * time.Millisecond},
			MinConnectTimeout: dialTimeout,
		}),
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(rawCodec{}), grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32)),
	)
	if err != nil {
		return nil, fmt.Errorf("making a client for the driver: %w", err)
	}
	d.life, d.end = context.WithCancel(context.Background())
	if err := d.awaitDriver(); err != nil {
		d.end()
		return nil, errors.Join(err, d.upstream.Close())
	}
	d.serving.Go(func() {
		// It returns when the gate is closed, and says no more than that.
		_ = d.server.Serve(d.gate)
	})
	d.serving.Go(d.keepConnected)
	return d, nil
}

// awaitDriver lets whoever starts a proxy before a driver that is there find the proxy's socket there, too.
func (d *Driver) awaitDriver() error {
	connection, err := net.DialTimeout("unix", d.target, dialTimeout)
	if err != nil {
		return nil //nolint:nilerr // A driver that is not there yet will be found.
	}
	_ = connection.Close()
	ctx, cancel := context.WithTimeout(d.life, dialTimeout)
	defer cancel()
	for state := connectivity.Idle; state != connectivity.Ready; state = d.upstream.GetState() {
		d.upstream.Connect()
		if !d.upstream.WaitForStateChange(ctx, state) {
			break
		}
	}
	return d.noteState()
}

func (d *Driver) dial(ctx context.Context, target string) (net.Conn, error) {
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "unix", target)
	if err != nil {
		return nil, err
	}
	c := &upstreamConn{Conn: connection, lost: d.lost}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.current = c
	return c, nil
}

// lost breaks the connections of clients before anybody can ask the driver again.
func (d *Driver) lost(c *upstreamConn) {
	_ = d.adjust(func() { // Closing a listener that is gone already leaves nothing to do.
		if d.current == c {
			d.current, d.isReady = nil, false
		}
	})
}

// keepConnected tries again whenever the connection to the driver is lost, and opens the gate when calls reach it.
func (d *Driver) keepConnected() {
	for d.life.Err() == nil {
		state := d.upstream.GetState()
		if state == connectivity.Idle {
			d.upstream.Connect()
		}
		// A gate that cannot be opened, since there is something in its place, is tried again.
		_ = d.noteState()
		ctx, cancel := context.WithTimeout(d.life, time.Second)
		d.upstream.WaitForStateChange(ctx, state)
		cancel()
	}
}

func (d *Driver) noteState() error {
	isReady := d.upstream.GetState() == connectivity.Ready
	return d.adjust(func() { d.isReady = isReady && d.current != nil })
}

func (d *Driver) adjust(change func()) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
	if d.isWanted && d.isReady {
		return d.gate.open()
	}
	return d.gate.shut()
}

// Close hangs up on everybody and ends the proxy.
func (d *Driver) Close() error {
	var err error
	d.close.Do(func() {
		d.end()
		err = d.gate.Close()
		d.server.Stop()
		err = errors.Join(err, d.upstream.Close())
		d.serving.Wait()
	})
	return err
}

// UseCounter makes the proxy number its effects together with others, as those of a client called so.
func (d *Driver) UseCounter(counter *Counter, client string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counter, d.client = counter, client
}

// Socket is the path of the proxy's socket.
func (d *Driver) Socket() string { return d.socket }

// Down takes the socket away and breaks all connections, until Up.
func (d *Driver) Down() error { return d.adjust(func() { d.isWanted = false }) }

// Up ends Down.
func (d *Driver) Up() error { return d.adjust(func() { d.isWanted = true }) }

// CutConnections breaks all connections; new ones are welcome at once.
func (d *Driver) CutConnections() { d.gate.cut() }

// Calls are all calls in the order of their arrival, those that are still being served included.
func (d *Driver) Calls() []Call { return d.journal.list() }

// ClearCalls forgets the calls so far.
func (d *Driver) ClearCalls() { d.journal.clear() }

// Await waits for a call that is as wanted, now or before. It is looked at when it arrives and when it is over.
func (d *Driver) Await(ctx context.Context, isWanted func(Call) bool) (Call, error) {
	return d.journal.await(ctx, isWanted)
}

// Count is how many calls match.
func (d *Driver) Count(match CallMatch) int {
	count := 0
	for _, c := range d.Calls() {
		if match.matches(c) {
			count++
		}
	}
	return count
}

func (d *Driver) counting() (*Counter, string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counter, d.client
}

// upstreamConn tells when the driver hangs up.
type upstreamConn struct {
	net.Conn
	lost func(*upstreamConn)
}

func (c *upstreamConn) Read(content []byte) (int, error) {
	n, err := c.Conn.Read(content)
	if err != nil {
		c.lost(c)
	}
	return n, err
}

// connCredentials are none, and tell a handler which connection its call came by.
type connCredentials struct {
	credentials.TransportCredentials
}

type connInfo struct{ conn *conn }

func (connInfo) AuthType() string { return "none" }

func (c connCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	came, _ := raw.(*conn)
	return raw, connInfo{came}, nil
}

func (c connCredentials) Clone() credentials.TransportCredentials {
	return connCredentials{c.TransportCredentials.Clone()}
}
