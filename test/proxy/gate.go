// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
)

// gate is a listener that can be shut and opened again while its server goes on serving, and that knows its
// connections. While it is shut, clients are refused by the kernel, as they are when a server has died.
type gate struct {
	address net.Addr
	listen  func() (net.Listener, error)

	mu      sync.Mutex
	inner   net.Listener
	conns   map[*conn]struct{}
	changed chan struct{}
	closed  bool
}

// newGate makes a gate that is shut.
func newGate(address net.Addr, listen func() (net.Listener, error)) *gate {
	return &gate{address: address, listen: listen, conns: map[*conn]struct{}{}, changed: make(chan struct{})}
}

func (g *gate) open() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return net.ErrClosed
	}
	if g.inner != nil {
		return nil
	}
	inner, err := g.listen()
	if err != nil {
		return fmt.Errorf("opening the proxy: %w", err)
	}
	g.inner = inner
	g.change()
	return nil
}

// shut refuses whoever comes, and hangs up on whoever is there.
func (g *gate) shut() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	var err error
	if g.inner != nil {
		err = g.inner.Close()
		g.inner = nil
		g.change()
	}
	g.hangUp()
	return err
}

// cut hangs up on whoever is there.
func (g *gate) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hangUp()
}

func (g *gate) hangUp() {
	for c := range g.conns {
		// The server on top finds out by itself; there is nobody to tell of a failure.
		_ = c.Conn.Close()
	}
	clear(g.conns)
}

func (g *gate) change() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// Accept waits through the times when the gate is shut.
func (g *gate) Accept() (net.Conn, error) {
	for {
		g.mu.Lock()
		inner, changed, closed := g.inner, g.changed, g.closed
		g.mu.Unlock()
		if closed {
			return nil, net.ErrClosed
		}
		if inner == nil {
			<-changed
			continue
		}
		accepted, err := inner.Accept()
		if err == nil {
			if c := g.track(inner, accepted); c != nil {
				return c, nil
			}
			continue
		}
		if !errors.Is(err, net.ErrClosed) {
			return nil, err
		}
	}
}

// track refuses a connection that was accepted while the gate was being shut.
func (g *gate) track(inner net.Listener, accepted net.Conn) net.Conn {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inner != inner {
		_ = accepted.Close()
		return nil
	}
	c := &conn{Conn: accepted, gate: g}
	g.conns[c] = struct{}{}
	return c
}

// Close ends Accept for good.
func (g *gate) Close() error {
	err := g.shut()
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.closed = true
		g.change()
	}
	return err
}

// Addr is where the gate is, also while it is shut.
func (g *gate) Addr() net.Addr { return g.address }

// conn is a connection of a client.
type conn struct {
	net.Conn
	gate *gate
}

func (c *conn) Close() error {
	c.gate.mu.Lock()
	delete(c.gate.conns, c)
	c.gate.mu.Unlock()
	return c.Conn.Close()
}

// isConnected asks the kernel, which knows of the death of a process at once.
func (c *conn) isConnected() bool {
	if c == nil {
		return false
	}
	socket, ok := c.Conn.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	gone := false
	if err := raw.Control(func(fd uintptr) { gone = hasHungUp(fd) }); err != nil {
		return false
	}
	return !gone
}
