// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// port is a TCP port of this machine that stays ours while nobody listens on it: a socket is bound to it that never
// listens, so that connections are refused and nobody else is given the port.
type port struct {
	address *net.TCPAddr
	fd      int
	once    sync.Once
}

func reservePort() (*port, error) {
	syscall.ForkLock.RLock()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("reserving a port: %w", err)
	}
	p := &port{fd: fd}
	if p.address, err = bindLoopback(fd); err != nil {
		p.release()
		return nil, fmt.Errorf("reserving a port: %w", err)
	}
	return p, nil
}

func bindLoopback(fd int) (*net.TCPAddr, error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return nil, err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return nil, err
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		return nil, err
	}
	address, ok := bound.(*unix.SockaddrInet4)
	if !ok {
		return nil, fmt.Errorf("bound to %T instead of an IPv4 address", bound)
	}
	return &net.TCPAddr{IP: net.IP(address.Addr[:]), Port: address.Port}, nil
}

func (p *port) listen() (net.Listener, error) {
	shared := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var inner error
		err := raw.Control(func(fd uintptr) {
			inner = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		})
		if err == nil {
			err = inner
		}
		return err
	}}
	// An address in numbers is not looked up, so there is nothing that could be cancelled.
	return shared.Listen(context.Background(), "tcp4", p.address.String())
}

func (p *port) release() {
	p.once.Do(func() { _ = unix.Close(p.fd) })
}
