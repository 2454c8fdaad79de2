// SPDX-License-Identifier: Apache-2.0

// Command driver is a small CSI driver. It keeps volumes as directories (or
// sparse files for block access) and snapshots as copies of them, in one
// folder of the machine that it runs on.
//
// It is meant to be read as an example and to be driven by tests, which can
// script its faults through a control socket. It enforces no quota and has no
// expansion; block volumes are loop devices where a kubelet is, else files.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// version is written by the linker; make does that.
var version = "unknown"

func main() {
	os.Exit(start())
}

// start returns the exit code: 0 after a signal, 2 for wrong flags, otherwise 1.
func start() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	settings, err := parse(os.Args[1:], os.Stdout)
	if errors.Is(err, errDone) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "driver:", err)
		return 2
	}
	// A scripted crash must look like a kill: no clean-up of any kind.
	settings.crash = func() { os.Exit(137) }
	if err := run(ctx, settings); err != nil {
		fmt.Fprintln(os.Stderr, "driver:", err)
		return 1
	}
	return 0
}
