// SPDX-License-Identifier: Apache-2.0

// Command run is what stands behind `make test`, `make verify` and `make demo`.
//
// It owns how a run looks from outside: which steps there are, that somebody who waits sees that something goes on, and
// one verdict at the end with an exit code that agrees with it.
// It must not know what the steps test.
// It is a Go program and not a shell script so that a machine with Go and make is enough.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

func main() { os.Exit(start(os.Args[1:])) }

func start(names []string) int {
	steps, err := pick(names)
	if err != nil {
		fmt.Fprintf(os.Stderr, "run: %v\nusage: go run ./test/run step...\n\n%s", err, describe())
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	ctx, lost := context.WithCancel(ctx)
	defer lost()
	out := newOutput(os.Stdout, lost)
	if slices.Equal(names, []string{"demo"}) {
		return demo(ctx, out)
	}
	title := "make " + strings.Join(names, " ")
	results := runAll(ctx, out, steps)
	if ctx.Err() != nil {
		reportInterrupted(out, title, results)
		return codeInterrupted
	}
	report(out, title, results)
	if failed(results) > 0 {
		return 1
	}
	return 0
}

// runAll goes on after a step that failed: one run then tells everything that is wrong.
func runAll(ctx context.Context, out io.Writer, steps []step) []result {
	results := make([]result, 0, len(steps))
	for i, s := range steps {
		if ctx.Err() != nil {
			break
		}
		fmt.Fprintf(out, "\n==> [%d/%d] %s: %s\n", i+1, len(steps), s.name, s.says)
		results = append(results, s.timed(ctx, out))
	}
	return results
}
