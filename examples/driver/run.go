// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/csi-tandem/csi-tandem/examples/driver/backend"
	"github.com/csi-tandem/csi-tandem/examples/driver/control"
	"github.com/csi-tandem/csi-tandem/examples/driver/script"
	"github.com/csi-tandem/csi-tandem/examples/driver/server"
)

// grace is how long calls may go on after a signal. It is short: whatever is
// cut off is found by its name when the caller asks again.
const grace = 2 * time.Second

// maximumSocket is what Linux leaves for the path of a socket.
const maximumSocket = 107

// run serves until the context ends.
func run(ctx context.Context, s *settings) (err error) {
	// First, since it fails most: for a wrong path nothing else should have been made.
	if err := prepareSockets(s.endpoint, s.control); err != nil {
		return err
	}
	b, err := backend.Open(s.backend)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	o := s.server
	o.Backend, o.Script = b, script.New(s.backend.Now, s.crash)
	o.Log = script.NewLog(s.backend.Now, s.logCalls)
	if err := settleNode(s, &o); err != nil {
		return err
	}
	services, err := server.New(o)
	if err != nil {
		return err
	}
	failed := make(chan error, 2+2*len(s.kubelets))
	// The control socket comes first, so that whoever sees the CSI socket can
	// count on it.
	if s.control != "" {
		l, err := listen(s.control)
		if err != nil {
			return err
		}
		h := control.NewServer(control.Parts{Backend: b, Script: o.Script, Log: o.Log, Crash: s.crash})
		defer func() { err = errors.Join(err, h.Close()) }()
		go func() {
			if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("serving %s: %w", s.control, err)
			}
		}()
	}
	if err := serveAt(s.endpoint, services, failed); err != nil {
		return err
	}
	others, err := serveKubelets(s.kubelets, o, failed)
	if err != nil {
		stopAll(append(others, services))
		return err
	}
	fmt.Fprintf(os.Stderr, "driver: %s on node %s listens on %s, publishing by %s\n", o.Name, o.Node, s.endpoint, o.Mount)
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	o.Script.Reset()
	stopAll(append(others, services))
	return err
}

// stopAll stops side by side: one grace is for all.
func stopAll(all []*grpc.Server) {
	var ends sync.WaitGroup
	for _, g := range all {
		ends.Go(func() { stop(g) })
	}
	ends.Wait()
}

func stop(services *grpc.Server) {
	done := make(chan struct{})
	go func() {
		services.GracefulStop()
		close(done)
	}()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		services.Stop()
		<-done
	}
}

// prepareSockets makes the folders of sockets. Whoever reaches a socket can do anything to the volumes.
func prepareSockets(paths ...string) error {
	for _, path := range paths {
		if path == "" {
			continue
		}
		if len(path) > maximumSocket {
			return fmt.Errorf("the path of the socket %s has %d bytes, and %d at most are possible", path, len(path), maximumSocket)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return fmt.Errorf("making the folder of the socket %s: %w", path, err)
		}
	}
	return nil
}

// listen takes over the socket that a killed predecessor left behind. One at which somebody listens is not ours to remove: he would
// go on, and nobody could reach him.
func listen(path string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == fs.ModeSocket {
		if err := abandoned(path); err != nil {
			return nil, fmt.Errorf("taking over the socket %s: %w", path, err)
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	return l, nil
}

func abandoned(path string) error {
	conn, err := net.DialTimeout("unix", path, grace)
	if err == nil {
		return errors.Join(errors.New("another process listens there"), conn.Close())
	}
	if errors.Is(err, unix.ECONNREFUSED) {
		return nil
	}
	return err
}
