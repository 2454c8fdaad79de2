// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"google.golang.org/grpc"

	"github.com/csi-tandem/csi-tandem/examples/driver/loop"
	"github.com/csi-tandem/csi-tandem/examples/driver/mount"
	"github.com/csi-tandem/csi-tandem/examples/driver/register"
	"github.com/csi-tandem/csi-tandem/examples/driver/server"
)

// serveKubelets offers each kubelet the services as the driver on its node has them, and then itself. It returns what has
// to be stopped: with its socket gone, a kubelet forgets the driver.
func serveKubelets(kubelets map[string]string, o server.Options, failed chan<- error) ([]*grpc.Server, error) {
	var started []*grpc.Server
	for node, dir := range kubelets {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(os.Stderr, "driver: there is no %s yet: no kubelet has been there\n", dir)
		}
		o.Node = node
		services, err := server.New(o)
		if err != nil {
			return started, err
		}
		endpoint := filepath.Join(dir, "plugins", o.Name, "csi.sock")
		// The CSI socket comes first: a kubelet calls as soon as it sees the other.
		if err := serveAt(endpoint, services, failed); err != nil {
			return started, err
		}
		started = append(started, services)
		registration, err := register.New(register.Plugin{Name: o.Name, Endpoint: endpoint, Out: os.Stderr})
		if err != nil {
			return started, err
		}
		if err := serveAt(filepath.Join(dir, "plugins_registry", o.Name+"-reg.sock"), registration, failed); err != nil {
			return started, err
		}
		started = append(started, registration)
	}
	return started, nil
}

func serveAt(path string, g *grpc.Server, failed chan<- error) error {
	if err := prepareSockets(path); err != nil {
		return err
	}
	l, err := listen(path)
	if err != nil {
		return err
	}
	go func() {
		if err := g.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			failed <- fmt.Errorf("serving %s: %w", path, err)
		}
	}()
	return nil
}

// settleNode finds out what works here. Without devices a kubelet's pods cannot have block volumes; who has asked for
// devices by name is not given files instead.
func settleNode(s *settings, o *server.Options) error {
	if o.Mount == "" {
		o.Mount = mount.Probe(s.backend.Dir)
	}
	if !o.Devices {
		return nil
	}
	err := loop.Probe()
	if err != nil && s.block == "auto" {
		fmt.Fprintf(os.Stderr, "driver: block volumes are published as files, with which no pod starts: %v\n", err)
		o.Devices = false
		return nil
	}
	return err
}
