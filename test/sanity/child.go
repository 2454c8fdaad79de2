// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
)

const (
	endpointVariable = "ENDPOINT"
	childVariable    = "SANITY_CHILD"
	dirVariable      = "SANITY_DIR"
	resultVariable   = "SANITY_RESULT"

	// foreign is the name of the run against a driver that is not ours.
	foreign = "endpoint"
)

// variant is one way in which our driver works.
type variant struct {
	flags   []string
	access  string
	secrets bool
}

var variants = map[string]variant{
	"mount":   {access: "mount"},
	"link":    {access: "mount", flags: []string{"--mount=link"}},
	"block":   {access: "block"},
	device:    {access: "block", flags: []string{"--block=device"}},
	"secrets": {access: "mount", secrets: true, flags: []string{"--require-secrets=token=letmein"}},
}

// device is left out where there are no loop devices.
const device = "device"

func ownVariants() []string {
	names := slices.Sorted(maps.Keys(variants))
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		fmt.Printf("sanity: without block volumes as devices: %v\n", err)
		return slices.DeleteFunc(names, func(name string) bool { return name == device })
	}
	_ = control.Close() // Only looked for.
	return names
}

// child runs all tests once and leaves the numbers in a file.
func child(ctx context.Context, name string) int {
	r, err := play(ctx, name)
	if err != nil {
		fmt.Fprintf(os.Stderr, "sanity: %s: %v\n", name, err)
		r.Failed++
	}
	if err := r.write(os.Getenv(resultVariable)); err != nil {
		fmt.Fprintln(os.Stderr, "sanity:", err)
		return 1
	}
	if r.Failed > 0 {
		return 1
	}
	return 0
}

func play(ctx context.Context, name string) (r result, err error) {
	dir, err := os.MkdirTemp(os.Getenv(dirVariable), name+"-")
	if err != nil {
		return r, err
	}
	config := sanity.NewTestConfig()
	config.TargetPath = filepath.Join(dir, "target")
	config.StagingPath = filepath.Join(dir, "staging")
	if name == foreign {
		config.Address = os.Getenv(endpointVariable)
		return specs(config, name, nil)
	}
	v, ok := variants[name]
	if !ok {
		return r, fmt.Errorf("no way of working is called %q", name)
	}
	config.Address = "unix://" + filepath.Join(dir, "csi.sock")
	config.TestVolumeAccessType = v.access
	config.TestVolumeMutableParameters = map[string]string{"iops": "500"}
	if v.secrets {
		if config.SecretsFile, err = writeSecrets(dir); err != nil {
			return r, err
		}
	}
	stop, err := launch(ctx, dir, v)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	claimed, err := claims(ctx, config.Address)
	if err != nil {
		return r, err
	}
	return specs(config, name, claimed)
}

// writeSecrets gives the token to every call that may have secrets.
func writeSecrets(dir string) (string, error) {
	var b strings.Builder
	for _, call := range []string{
		"CreateVolume", "DeleteVolume", "ControllerValidateVolumeCapabilities", "NodeStageVolume", "NodePublishVolume",
		"CreateSnapshot", "DeleteSnapshot", "ControllerModifyVolume", "ListSnapshots", "GetSnapshot",
	} {
		fmt.Fprintf(&b, "%sSecret:\n  token: letmein\n", call)
	}
	file := filepath.Join(dir, "secrets.yaml")
	return file, os.WriteFile(file, []byte(b.String()), 0o600)
}

// launch starts the driver and waits for its socket. The returned function
// ends it and removes what it stored.
func launch(ctx context.Context, dir string, v variant) (func() error, error) {
	socket := filepath.Join(dir, "csi.sock")
	args := append([]string{
		"--endpoint=unix://" + socket, "--state=" + filepath.Join(dir, "state"),
		"--node-topology=node1=zone=a,rack=r1", "--node-topology=node2=zone=b,rack=r2", "--node=node1",
	}, v.flags...)
	// Ended by stop, and by its context only if stop is not reached.
	cmd := exec.CommandContext(ctx, filepath.Join(os.Getenv(dirVariable), "driver"), args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the driver: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stop := func() error {
		// An error here means that it ended before, which Wait reports.
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := <-ended; err != nil {
			return fmt.Errorf("ending the driver: %w", err)
		}
		return os.RemoveAll(dir)
	}
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	for {
		if c, err := net.Dial("unix", socket); err == nil {
			return stop, c.Close()
		}
		select {
		case err := <-ended:
			return nil, fmt.Errorf("starting the driver: it ended: %v", err)
		case <-deadline.C:
			return nil, errors.Join(errors.New("starting the driver: no socket after 30 s"), stop())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
