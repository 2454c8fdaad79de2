// SPDX-License-Identifier: Apache-2.0

// Package driver owns the connection to the CSI driver: dialing its socket, asking who it is and what it
// can do, and one method for each call, with its deadline inside.
//
// It must not know Kubernetes, nor retry, nor ask at call time whether the driver can do something.
//
// In the walks it is the last stop before the storage: act hands it a finished request, and it answers
// with the response or a *fault.Error.
package driver

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-lib-utils/connection"
	"github.com/kubernetes-csi/csi-lib-utils/metrics"
	"github.com/kubernetes-csi/csi-lib-utils/rpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/fault"
)

// dialTimeout is how long a driver that is not there yet is awaited in one try.
const dialTimeout = 30 * time.Second

// Options of a connection.
type Options struct {
	// Address is an absolute path or a unix:// URL.
	Address string
	// Timeout is the deadline of each call.
	Timeout time.Duration
	// Metrics records every call; nil records nothing.
	Metrics metrics.CSIMetricsManager
	// Lost, if set, is told when the connection breaks. It is made again by itself.
	Lost func()
}

// Identity is what a driver says about itself.
type Identity struct {
	Name         string
	Version      string
	Capabilities capability.Set
}

// Conn is a connection to a driver. It reconnects by itself and can be used by many at once.
type Conn struct {
	conn       *grpc.ClientConn
	timeout    time.Duration
	metrics    metrics.CSIMetricsManager
	identity   csi.IdentityClient
	controller csi.ControllerClient
	node       csi.NodeClient
	calls      *traced
	losses     atomic.Int64
	guard      *guard
}

// longestSocket is what Linux leaves for the path of a socket. A longer one could be tried for ever.
const longestSocket = 107

// CheckAddress refuses what is not the path of a unix socket, before anything is tried.
func CheckAddress(address string) error {
	path, _ := strings.CutPrefix(address, "unix://")
	switch {
	case address == "":
		return errors.New("--csi-address must not be empty: give the driver's socket, such as /run/csi/socket")
	case !filepath.IsAbs(path):
		return fmt.Errorf("--csi-address=%s: use an absolute path or unix:///absolute/path", address)
	case len(path) > longestSocket:
		return fmt.Errorf("--csi-address=%s: the path of a socket has at most %d bytes, and this has %d: mount its folder at a shorter path", address, longestSocket, len(path))
	}
	return nil
}

// Connect dials the driver's socket and waits until it answers or 30 seconds have gone.
func Connect(ctx context.Context, options Options) (*Conn, error) {
	if err := CheckAddress(options.Address); err != nil {
		return nil, err
	}
	c := &Conn{timeout: options.Timeout, metrics: options.Metrics}
	c.guard = newGuard(c.Losses)
	lost := connection.OnConnectionLoss(func(context.Context) bool {
		c.losses.Add(1)
		if options.Lost != nil {
			options.Lost()
		}
		return true
	})
	dial, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := connection.Connect(dial, options.Address, options.Metrics, lost)
	if err != nil {
		return nil, fmt.Errorf("connecting to the driver at %s: %w", options.Address, err)
	}
	c.conn, c.calls = conn, &traced{ClientConnInterface: conn, guard: grpc.PerRPCCredentials(c.guard)}
	c.identity, c.controller, c.node = csi.NewIdentityClient(c.calls), csi.NewControllerClient(c.calls), csi.NewNodeClient(c.calls)
	return c, nil
}

// Close ends the connection.
func (c *Conn) Close() error { return c.conn.Close() }

// IsConnected tells whether the driver can be reached right now.
func (c *Conn) IsConnected() bool { return c.conn.GetState() == connectivity.Ready }

// WaitConnected waits until the connection stands again.
func (c *Conn) WaitConnected(ctx context.Context) error {
	for {
		state := c.conn.GetState()
		if state == connectivity.Ready {
			return nil
		}
		c.conn.Connect()
		if !c.conn.WaitForStateChange(ctx, state) {
			return fmt.Errorf("waiting for the driver: %w", ctx.Err())
		}
	}
}

// Losses counts how often the connection broke.
func (c *Conn) Losses() int64 { return c.losses.Load() }

// Identify waits until the driver says that it is ready, then asks for its name and capabilities. The
// driver's name goes into the metrics of all later calls. After a loss of the connection calls of the Controller service wait until it
// has found the same driver again.
func (c *Conn) Identify(ctx context.Context) (Identity, error) {
	losses := c.losses.Load()
	if err := rpc.ProbeForever(ctx, c.conn, c.timeout); err != nil {
		return Identity{}, err
	}
	info, err := call(ctx, c, fault.Identify, func(ctx context.Context) (*csi.GetPluginInfoResponse, error) {
		return c.identity.GetPluginInfo(ctx, &csi.GetPluginInfoRequest{})
	})
	if err != nil {
		return Identity{}, fmt.Errorf("asking the driver for its name: %w", err)
	}
	if err := checkName(info.GetName()); err != nil {
		return Identity{}, fmt.Errorf("asking the driver for its name: %w", err)
	}
	name := info.GetName()
	c.calls.driver.Store(&name)
	if c.metrics != nil {
		c.metrics.SetDriverName(name)
	}
	capabilities, err := c.fetchCapabilities(ctx)
	identity := Identity{Name: info.GetName(), Version: info.GetVendorVersion(), Capabilities: capabilities}
	if err != nil {
		return identity, err
	}
	c.guard.meet(identity, losses)
	return identity, nil
}

func (c *Conn) fetchCapabilities(ctx context.Context) (capability.Set, error) {
	plugin, err := call(ctx, c, fault.Identify, func(ctx context.Context) (*csi.GetPluginCapabilitiesResponse, error) {
		return c.identity.GetPluginCapabilities(ctx, &csi.GetPluginCapabilitiesRequest{})
	})
	if err != nil {
		return capability.Set{}, fmt.Errorf("asking the driver for its plugin capabilities: %w", err)
	}
	controller, err := call(ctx, c, fault.Identify, func(ctx context.Context) (*csi.ControllerGetCapabilitiesResponse, error) {
		return c.controller.ControllerGetCapabilities(ctx, &csi.ControllerGetCapabilitiesRequest{})
	})
	if err != nil {
		return capability.Set{}, fmt.Errorf("asking the driver for its controller capabilities: %w", err)
	}
	return capability.New(plugin.GetCapabilities(), controller.GetCapabilities()), nil
}

// call gives a call its deadline and its failure a class.
func call[T any](ctx context.Context, c *Conn, op fault.Operation, do func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	answer, err := do(ctx)
	if failure := fault.New(op, err); failure != nil {
		return answer, failure
	}
	return answer, nil
}
