// SPDX-License-Identifier: Apache-2.0

// Command demo plays the story that users are taught, with both sidecars beside a real CSI driver on a real Kubernetes
// control plane, and ends with a verdict.
//
// It takes no arguments. It is steered by variables, as make passes them on; usage lists them.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const usage = `Plays the story of csi-tandem on a real Kubernetes control plane. There are no arguments; variables steer it:

  DRIVER=unix:///…   plays beside another driver, which runs already
  KEEP=1             leaves everything running and says how to use and how to stop it
  NODES=real         plays on real nodes, whose kubelets run the pods; needs root, see the README
  CHAOS=both         kills the sidecars with -9 at random moments meanwhile (or provisioner, or snapshotter)
`

func main() { os.Exit(start(os.Args[1:])) }

func start(args []string) int {
	if len(args) > 0 {
		return refuse(args)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	ctx, lost := context.WithCancel(ctx)
	defer lost()
	d := newDemo(newOutput(os.Stdout, lost))
	if isKeeper() {
		return d.runAndKeep(ctx)
	}
	began := time.Now()
	if err := d.check(ctx); err != nil {
		return d.speak(ending{err: err, began: began, interrupted: ctx.Err() != nil})
	}
	if d.keep {
		return d.startKeeper(ctx)
	}
	return d.run(ctx)
}

// refuse does not begin for somebody who asked for something else.
func refuse(args []string) int {
	switch args[0] {
	case "-h", "-help", "--help":
		fmt.Print(usage)
		return 0
	}
	fmt.Fprintf(os.Stderr, "demo: unexpected argument %q; see --help\n", args[0])
	return 2
}
