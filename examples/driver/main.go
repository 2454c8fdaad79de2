// SPDX-License-Identifier: Apache-2.0

// Command driver is a small CSI driver. It keeps volumes as directories (or
// sparse files for block access) and snapshots as copies of them, in one
// folder of the machine that it runs on.
//
// It is meant to be read as an example and to be driven by tests, which can
// script its faults through a control socket. It enforces no quota and has no
// expansion; block volumes are files, not devices.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(start())
}

// start returns the exit code: 0 after a signal, 2 for wrong flags, otherwise 1.
func start() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o := newOptions()
	flags := flag.NewFlagSet("driver", flag.ContinueOnError)
	o.AddFlags(flags)
	if err := flags.Parse(os.Args[1:]); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "driver: unexpected argument %q\n", flags.Arg(0))
		return 2
	}
	settings, err := o.Settle()
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
