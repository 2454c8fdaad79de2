// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Program is one of the programs that a cast is made of.
type Program string

// The programs.
const (
	Driver      Program = "driver"
	Provisioner Program = "provisioner"
	Snapshotter Program = "snapshotter"
)

// ProgramsVariable names an environment variable with a folder of programs to use instead of building them: to try a
// release, or one built with the race detector.
const ProgramsVariable = "CSI_TANDEM_PROGRAMS"

const module = "module github.com/csi-tandem/csi-tandem"

// buildSilence is how long a build may say nothing before somebody who waits is told that it goes on.
const buildSilence = 10 * time.Second

// findRoot walks up from the working folder to the checkout.
func findRoot() (string, error) {
	working, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the checkout: %w", err)
	}
	for dir := working; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil {
			for line := range strings.Lines(string(content)) {
				if strings.TrimSpace(line) == module {
					return dir, nil
				}
			}
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("finding the checkout: %s is not inside one", working)
		}
	}
}

// build compiles the three programs into a folder of their own, so that nobody else's build can replace one that runs.
func build(ctx context.Context, root, dir string, out io.Writer) (map[Program]string, error) {
	if given := os.Getenv(ProgramsVariable); given != "" {
		return find(given)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder for programs: %w", err)
	}
	began := time.Now()
	version := describe(ctx, root)
	fmt.Fprintf(out, "building the provisioner, the snapshotter and the example driver, version %s\n", version)
	programs := map[Program]string{}
	for _, target := range []struct {
		program Program
		source  string
	}{{Provisioner, "cmd/provisioner"}, {Snapshotter, "cmd/snapshotter"}, {Driver, "examples/driver"}} {
		path := filepath.Join(dir, string(target.program))
		// Each from its own folder: that works whichever module it belongs to.
		if err := compile(ctx, filepath.Join(root, filepath.FromSlash(target.source)), path, version, out); err != nil {
			return nil, fmt.Errorf("building %s: %w", target.source, err)
		}
		programs[target.program] = path
	}
	fmt.Fprintf(out, "built them in %.1fs\n", time.Since(began).Seconds())
	return programs, nil
}

// find takes programs that somebody else has built.
func find(dir string) (map[Program]string, error) {
	programs := map[Program]string{}
	for _, program := range []Program{Provisioner, Snapshotter, Driver} {
		path, err := filepath.Abs(filepath.Join(dir, string(program)))
		if err == nil {
			path, err = filepath.EvalSymlinks(path)
		}
		if err != nil {
			return nil, fmt.Errorf("finding the %s in %s, which %s names: %w", program, dir, ProgramsVariable, err)
		}
		programs[program] = path
	}
	return programs, nil
}

// describe names the checkout as make does.
func describe(ctx context.Context, root string) string {
	cmd := exec.CommandContext(ctx, "git", "describe", "--tags", "--always", "--dirty")
	cmd.Dir = root
	said, err := cmd.Output()
	if version := strings.TrimSpace(string(said)); err == nil && version != "" {
		return version
	}
	return "unknown"
}

func compile(ctx context.Context, source, target, version string, out io.Writer) error {
	// A go that is killed leaves what it works in. That goes with the folder of the programs.
	work, err := os.MkdirTemp(filepath.Dir(target), "building-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w -X main.version="+version, "-o", target, ".")
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOTMPDIR="+work)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	// go has children, and they hold what it says.
	leash(cmd)
	// It waits for them when it is interrupted, and not when it is killed.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = endGrace
	done := make(chan error, 1)
	go func() {
		// See Process.Start: the thread that forks has to stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		done <- cmd.Run()
	}()
	began := time.Now()
	ticker := time.NewTicker(buildSilence)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			fmt.Fprintf(out, "compiling the %s, %s so far\n", filepath.Base(target), time.Since(began).Round(time.Second))
		case err := <-done:
			if ctx.Err() != nil && cmd.Process != nil {
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // Mostly nobody is left, which is the error.
			}
			if err != nil {
				return errors.Join(context.Cause(ctx), err, errors.New(strings.TrimSpace(said.String())))
			}
			return nil
		}
	}
}
