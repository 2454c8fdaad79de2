// SPDX-License-Identifier: Apache-2.0

// Command prepare builds the control plane that the end-to-end tests start, in the open: inside go test nobody would see for ten
// minutes that anything happens. It is apart from run so that run itself compiles in a second.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/csi-tandem/csi-tandem/test/controlplane"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	built, err := controlplane.Build(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "prepare: %v\n", err)
		os.Exit(1)
	}
	fmt.Println("the control plane is", built)
}
