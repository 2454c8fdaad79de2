// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/driver"
	"github.com/csi-tandem/csi-tandem/pkg/throttle"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
)

const (
	// retryDriver is how soon a driver that gave no good answer is asked again.
	retryDriver = time.Second
	// lookAtDriver is how often an idle process looks whether its driver is still there.
	lookAtDriver = time.Second
	// remind is how often a log line says that something is still being waited for.
	remind = 10 * time.Second
	// remindDriver is the same for the driver: each try takes that long.
	remindDriver = 30 * time.Second
)

// link is the driver as it was met first. One that comes back with another face is another driver, and
// what was decided for the first does not hold for it.
type link struct {
	conn     *driver.Conn
	identity driver.Identity
	// place is where the driver says that it runs, in a process that serves one node.
	place topology.Segment
	// losses is how often the connection had been lost when the driver was last asked who it is.
	losses int64
	// calls go through gates, which keep from term to term what they have learnt of the driver.
	calls *throttle.Driver
}

// connect waits for the driver, however long that takes, and asks who it is.
func (l *life) connect(ctx context.Context) (*link, error) {
	address := l.Options.CSIAddress
	if address == "" {
		klog.FromContext(ctx).Info("Running without a driver")
		return &link{}, nil
	}
	l.health.set(checkDriver, "waiting for its socket "+address)
	// A connection is tried for half a minute before it says that it failed; who starts the process wants to know now.
	if err := knock(ctx, address); err != nil {
		klog.FromContext(ctx).Info("The driver is not there yet: it is awaited for as long as it takes", "address", address, "why", err.Error())
	}
	options := l.meters.driver
	options.Address, options.Timeout = address, l.Options.Timeout
	conn, err := insist(ctx, l, "Waiting for the driver", func() (*driver.Conn, error) {
		return dial(ctx, options)
	})
	if err != nil {
		return nil, err
	}
	losses := conn.Losses()
	identity, err := l.identify(ctx, conn)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	l.tracer.ServeDriver(identity.Name)
	klog.FromContext(ctx).Info("Driver identified", "driver", identity.Name, "version", identity.Version, "capabilities", identity.Capabilities.String())
	for _, required := range l.Requires {
		if !identity.Capabilities.Has(required) {
			_ = conn.Close()
			return nil, &lastWords{fmt.Errorf("the driver %s does not have the capability %s, without which %s has nothing to do; run it beside a driver that has", identity.Name, required, l.Name)}
		}
	}
	calls := throttle.New(conn, throttle.Options{
		Most: int(l.Options.WorkerThreads), Fixed: int(l.Options.MaxParallelCalls), Deadline: l.Options.Timeout, Clock: l.clock,
	})
	place, err := l.fetchPlace(ctx, conn, func() {})
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &link{conn, identity, place, losses, calls}, nil
}

// dial connects, and says of a socket that is not there what knocking finds: gRPC only says that its time is over.
func dial(ctx context.Context, options driver.Options) (*driver.Conn, error) {
	conn, err := driver.Connect(ctx, options)
	if err == nil {
		return conn, nil
	}
	if why := knock(ctx, options.Address); why != nil {
		err = why
	}
	return nil, fmt.Errorf("waiting for its socket %s: %w", options.Address, err)
}

func (l *life) identify(ctx context.Context, conn *driver.Conn) (driver.Identity, error) {
	l.health.set(checkDriver, "waiting until it says that it is ready, and who it is")
	identity, err := insist(ctx, l, "Waiting for the driver to identify itself", func() (driver.Identity, error) {
		return conn.Identify(ctx)
	})
	if err == nil {
		l.health.set(checkDriver, "")
	}
	return identity, err
}

// knock tries the socket once.
func knock(ctx context.Context, address string) error {
	path := strings.TrimPrefix(address, "unix://")
	// What dialing says of a file is that nobody listens, which sends people to look for a driver that is there.
	if found, err := os.Stat(path); err == nil && found.Mode().Type() != os.ModeSocket {
		return fmt.Errorf("%s is no socket: %s", path, found.Mode())
	}
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path)
	if err != nil {
		return err
	}
	return conn.Close()
}

// insist tries until it works or the context ends. A driver that is not there is a state, not an end.
func insist[T any](ctx context.Context, l *life, what string, try func() (T, error)) (T, error) {
	var last time.Time
	for {
		result, err := try()
		if err == nil {
			return result, nil
		}
		if ctx.Err() != nil {
			return result, ctx.Err()
		}
		l.health.set(checkDriver, err.Error())
		if now := l.clock.Now(); now.Sub(last) >= remindDriver {
			last = now
			klog.FromContext(ctx).Info(what, "address", l.Options.CSIAddress, "why", err.Error())
		}
		select {
		case <-ctx.Done():
			return result, ctx.Err()
		case <-l.clock.After(retryDriver):
		}
	}
}

// close ends the connection, if there is one.
func (k *link) close() {
	if k.conn != nil {
		_ = k.conn.Close()
	}
}

// watch notices that the driver went away, waits for it, and makes sure that it is the same one.
func (l *life) watch(ctx context.Context, k *link) error {
	if k.conn == nil {
		return nil
	}
	ticker := l.clock.NewTicker(lookAtDriver)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
		if k.conn.IsConnected() && k.conn.Losses() == k.losses {
			continue
		}
		if err := l.meetAgain(ctx, k); err != nil {
			return err
		}
	}
}

func (l *life) meetAgain(ctx context.Context, k *link) error {
	logger := klog.FromContext(ctx)
	l.health.set(checkDriver, "lost the connection, waiting for it")
	logger.Error(nil, "Lost the connection to the driver: calls are tried again until it is back", "driver", k.identity.Name)
	if k.conn.WaitConnected(ctx) != nil {
		return nil // the process is ending
	}
	k.losses = k.conn.Losses() // before it is asked who it is: the next connection may be another one's
	again, err := l.identify(ctx, k.conn)
	if err != nil {
		return nil // likewise: nothing else ends the wait
	}
	switch {
	case again.Name != k.identity.Name:
		return &lastWords{fmt.Errorf("the driver was %s and came back as %s: exiting to start anew for it", k.identity.Name, again.Name)}
	case !again.Capabilities.Equal(k.identity.Capabilities):
		return &lastWords{fmt.Errorf("the driver %s came back with other capabilities (were: %s; are: %s): exiting to start anew with them", again.Name, k.identity.Capabilities, again.Capabilities)}
	}
	if err := l.checkPlace(ctx, k); err != nil {
		return err
	}
	logger.Info("The driver is back", "driver", again.Name, "version", again.Version)
	return nil
}
