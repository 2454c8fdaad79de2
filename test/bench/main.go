// SPDX-License-Identifier: Apache-2.0

// Command bench measures the pair, or any other programs that do its work, beside a driver that costs nothing, on a real
// control plane that it fills itself.
//
// It owns what is measured and how: when an object counts as done, what the API server was asked for it and by whom, what
// that cost in processor time and memory, and what a bare client reaches on the same machine, which is the limit.
// It must not know how the programs are made; it starts them as a user would, with a socket and a kubeconfig.
// It stands outside the walks, above the stage. Nothing here judges a time: counts are compared with budgets, by a test
// of this package, and times are reported.
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

func main() { os.Exit(start(os.Args[1:])) }

func start(args []string) int {
	o, err := parse(args, os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := measure(ctx, o); err != nil {
		if ctx.Err() != nil {
			fmt.Fprintln(os.Stderr, "bench: interrupted, everything stopped")
			return 130
		}
		fmt.Fprintf(os.Stderr, "BENCH FAILED: %v\n", err)
		return 1
	}
	return 0
}

// measure sets the stage and runs what was asked for on it.
func measure(ctx context.Context, o *options) error {
	b, err := open(ctx, o, os.Stderr)
	if err != nil {
		return err
	}
	run := map[string]func(context.Context, *bench) error{
		"phases": runPhases, "latency": runLatency, "capacity": runCapacity, "memory": runMemory,
	}
	err = run[o.mode](ctx, b)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w%s", err, b.lastWords())
	}
	return errors.Join(err, b.close(err))
}
