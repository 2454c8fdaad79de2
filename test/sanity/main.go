// SPDX-License-Identifier: Apache-2.0

// Command sanity runs the conformance tests of the CSI community (csi-test)
// against a CSI driver and says in one line how they went.
//
// Without ENDPOINT it builds examples/driver and runs all tests once for each
// of its ways of working, every time against a fresh process. With
// ENDPOINT=unix:///… it runs them once against the driver behind that socket.
//
// It must not import the module of the sidecars: csi-test has dependencies
// that are not theirs. It stands outside all walks.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	os.Exit(start())
}

func start() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The test framework can run only once per process, hence a child for
	// each way of working.
	if name := os.Getenv(childVariable); name != "" {
		return child(ctx, name)
	}
	if err := parent(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "sanity:", err)
		return 1
	}
	return 0
}

// parent runs the children one after the other and adds up.
func parent(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "sanity-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	names := []string{foreign}
	if endpoint := os.Getenv(endpointVariable); endpoint != "" {
		name, err := greet(ctx, endpoint)
		if err != nil {
			return fmt.Errorf("%s=%s: %w", endpointVariable, endpoint, err)
		}
		fmt.Printf("sanity: the driver at %s is %s\n", endpoint, name)
	} else {
		names = ownVariants()
		if err := build(ctx, dir); err != nil {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var total result
	broken := false
	for _, name := range names {
		file := filepath.Join(dir, name+".result")
		cmd := exec.CommandContext(ctx, self)
		cmd.Env = append(os.Environ(), childVariable+"="+name, dirVariable+"="+dir, resultVariable+"="+file)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		// A child that is told to end can take its driver with it.
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		broken = cmd.Run() != nil || broken
		r, err := readResult(file)
		if err != nil {
			return fmt.Errorf("running %s: no result: %w", name, err)
		}
		total.add(r)
	}
	fmt.Printf("sanity: %s\n", total)
	if broken || total.Failed > 0 || total.Passed == 0 {
		return errors.New("not conforming")
	}
	return nil
}

// build compiles the driver of the module two folders up.
func build(ctx context.Context, dir string) error {
	root, err := rootFolder(ctx)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, "driver"), "./examples/driver")
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	// A go that is killed leaves what it works in.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building the driver in %s: %w", root, err)
	}
	return nil
}

// rootFolder goes by this module's go.mod, wherever below it the command is run.
func rootFolder(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("finding this module: %w", err)
	}
	file := string(out[:max(0, len(out)-1)])
	if filepath.Base(filepath.Dir(file)) != "sanity" {
		return "", fmt.Errorf("run it as go run -C test/sanity . (this is %q)", file)
	}
	return filepath.Join(filepath.Dir(file), "..", ".."), nil
}
