// SPDX-License-Identifier: Apache-2.0

// Command prepare builds the control plane that the end-to-end tests start, in the open: inside go test nobody would see for ten
// minutes that anything happens. With the argument "nodes" it also builds what real nodes need, and with "missing" it only
// tells why there can be none; "sweep" removes what nodes of a run that was killed have left. It is apart from run so that run itself compiles in a second.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/csi-tandem/csi-tandem/test/controlplane"
	"github.com/csi-tandem/csi-tandem/test/node"
)

func main() { os.Exit(start(os.Args[1:])) }

func start(args []string) int {
	if slices.Equal(args, []string{"missing"}) {
		fmt.Print(strings.Join(node.Missing(), "; "))
		return 0
	}
	if slices.Equal(args, []string{"sweep"}) {
		if err := node.Sweep(os.Stdout); err != nil {
			fmt.Fprintf(os.Stderr, "prepare: removing what nodes have left: %v\n", err)
			return 1
		}
		return 0
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	built, err := controlplane.Build(ctx, os.Stdout)
	if err == nil {
		fmt.Println("the control plane is", built)
	}
	if err == nil && slices.Equal(args, []string{"nodes"}) {
		err = node.Build(ctx, os.Stdout)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "prepare: %v\n", err)
		return 1
	}
	return 0
}
