// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// podTrees need real nodes.
var podTrees = []string{"./test/node/...", "./test/pods"}

// podsBudget is for compiling what real nodes need, as a part of `make test`: what takes longer is left to `make e2e-pods`.
const podsBudget = 5 * time.Minute

// pods runs the tests, and fails where there can be no real nodes: somebody asked for them.
func pods(ctx context.Context, out io.Writer) result {
	missing, err := nodesMissing(ctx)
	if err == nil && missing != "" {
		err = errors.New(missing)
	}
	if err != nil {
		return result{failed: 1, note: err.Error()}
	}
	prepared := checkAll(goCommand("run", "./test/run/prepare", "nodes"))(ctx, out)
	if prepared.failed > 0 {
		return prepared
	}
	return testPods(ctx, out)
}

// podsIfPossible runs those that do not have everything for themselves. It leaves them out, and says why, where there can be none or where they would make a run too long.
func podsIfPossible(ctx context.Context, out io.Writer) result {
	missing, err := nodesMissing(ctx)
	if err != nil {
		return result{failed: 1, note: err.Error()}
	}
	if missing != "" {
		fmt.Fprintf(out, "    left out: %s\n", missing)
		return result{skipped: 1, note: "left out: " + missing}
	}
	limited, cancel := context.WithTimeout(ctx, podsBudget)
	defer cancel()
	prepared := checkAll(goCommand("run", "./test/run/prepare", "nodes"))(limited, out)
	switch {
	case limited.Err() != nil && ctx.Err() == nil:
		note := fmt.Sprintf("left out: what they need is not compiled after %s; make e2e-pods takes its time", podsBudget)
		fmt.Fprintf(out, "    %s\n", note)
		return result{skipped: 1, note: note}
	case prepared.failed > 0:
		return prepared
	}
	return testPods(ctx, out, "-short")
}

func testPods(ctx context.Context, out io.Writer, more ...string) result {
	// One package after the other: each ends by looking whether anything is left.
	r := goTest(ctx, out, []string{"CSI_TANDEM_PODS=1"}, slices.Concat([]string{"-count=1", "-p=1", "-timeout=30m"}, more, podTrees)...)
	if ctx.Err() != nil {
		// Tests die of an interrupt. What they leave then is removed now, and not only by the next run.
		rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*patience)
		defer cancel()
		if err := goCommand("run", "./test/run/prepare", "sweep")(rest, out); err != nil {
			fmt.Fprintf(out, "    %v\n", err)
		}
	}
	return r
}

// nodesMissing asks another program, so that this one compiles in a second.
func nodesMissing(ctx context.Context) (string, error) {
	cmd := inGroup(ctx, "go", "run", "./test/run/prepare", "missing")
	defer endGroup(cmd)
	said, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("looking for what real nodes need: %w", err)
	}
	return string(said), nil
}
