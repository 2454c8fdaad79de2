// SPDX-License-Identifier: Apache-2.0

// Command demo plays the story that users are taught, with both sidecars beside a real CSI driver on a real Kubernetes
// control plane, and ends with a verdict.
//
// It is steered by variables, as make passes them on:
//
//	DRIVER=unix:///…   plays beside another driver, which runs already
//	KEEP=1             leaves everything running and says how to use and how to stop it
//	CHAOS=both         kills the sidecars with -9 at random moments meanwhile (or provisioner, or snapshotter)
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(start()) }

func start() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	d := newDemo(os.Stdout)
	switch {
	case !d.keep:
		return d.run(ctx)
	case isKeeper():
		return d.runAndKeep(ctx)
	default:
		return startKeeper(ctx)
	}
}
