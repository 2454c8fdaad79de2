// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// patience is how long go may take to end its tests after an interrupt.
const patience = 30 * time.Second

// runTests runs what names a case, in the packages concerned: the ones that need a control plane by themselves, and only when
// they are asked for.
func runTests(ctx context.Context, o options, places map[string][]mention, progress io.Writer) (*outcomes, error) {
	module, err := exec.CommandContext(ctx, "go", "list", "-C", o.root, "-m").Output()
	if err != nil {
		return nil, fmt.Errorf("asking for the module: %w", err)
	}
	ran := &outcomes{
		module: strings.TrimSpace(string(module)),
		ended:  map[string]map[string]string{},
		kept:   map[string][]string{},
	}
	near, far := split(places)
	if err := near.run(ctx, o, ran, progress); err != nil {
		return nil, err
	}
	switch {
	case len(far.dirs) == 0:
	case o.endToEnd:
		err = far.run(ctx, o, ran, progress, "-count=1", "-timeout=40m")
	default:
		fmt.Fprintf(progress, "not run: %s (CSI_TANDEM_E2E=1 runs them too)\n", strings.Join(far.dirs, " "))
	}
	return ran, err
}

// errand is one call of go test.
type errand struct {
	dirs, tests []string
}

func split(places map[string][]mention) (near, far *errand) {
	near, far = &errand{}, &errand{}
	for _, mentions := range places {
		for _, m := range mentions {
			e := near
			if levelOf(m.dir) == levelEndToEnd {
				e = far
			}
			e.dirs = append(e.dirs, m.dir)
			e.tests = append(e.tests, m.tests...)
		}
	}
	for _, e := range []*errand{near, far} {
		slices.Sort(e.dirs)
		slices.Sort(e.tests)
		e.dirs, e.tests = slices.Compact(e.dirs), slices.Compact(e.tests)
	}
	return near, far
}

// run: a test that fails is an outcome; only what kept go from telling outcomes is an error.
func (e *errand) run(ctx context.Context, o options, ran *outcomes, progress io.Writer, flags ...string) error {
	if len(e.dirs) == 0 {
		return nil
	}
	fmt.Fprintf(progress, "running %d tests of %d packages\n", len(e.tests), len(e.dirs))
	args := append([]string{"test", "-C", o.root, "-json", "-run=^(" + strings.Join(e.tests, "|") + ")$"}, flags...)
	for _, dir := range e.dirs {
		args = append(args, "./"+dir)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	// go hands an interrupt on to the tests that it runs; a kill would leave them behind.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = patience
	cmd.Stderr = progress
	events, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("starting go test: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting go test: %w", err)
	}
	readErr := ran.read(events, progress)
	waitErr := cmd.Wait()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("running tests: %w", ctx.Err())
	case readErr != nil:
		return readErr
	case waitErr == nil:
		return nil
	case !errors.As(waitErr, &exit) || !ran.anyFailed():
		return fmt.Errorf("running tests: %w", waitErr)
	}
	return nil
}

func (o *outcomes) anyFailed() bool {
	for _, ended := range o.ended {
		if ended[""] == resultFailed {
			return true
		}
	}
	return false
}
