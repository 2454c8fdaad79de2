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
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

func main() {
	names := os.Args[1:]
	steps, err := pick(names)
	if err != nil {
		fmt.Fprintf(os.Stderr, "run: %v\nusage: go run ./test/run step...\n\n%s", err, describe())
		os.Exit(2)
	}
	if slices.Equal(names, []string{"demo"}) {
		os.Exit(demo())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	results := runAll(ctx, os.Stdout, steps)
	stop()
	report(os.Stdout, "make "+strings.Join(names, " "), results)
	if failed(results) > 0 {
		os.Exit(1)
	}
}

// runAll goes on after a step that failed: one run then tells everything that is wrong.
func runAll(ctx context.Context, out *os.File, steps []step) []result {
	results := make([]result, 0, len(steps))
	for i, s := range steps {
		if ctx.Err() != nil {
			results = append(results, result{step: s, failed: 1, note: "interrupted"})
			continue
		}
		fmt.Fprintf(out, "\n==> [%d/%d] %s: %s\n", i+1, len(steps), s.name, s.says)
		results = append(results, s.timed(ctx, out))
	}
	return results
}
