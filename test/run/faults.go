// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"os"
	"strings"
)

// faultTree holds the suites that spoil requests and end processes. Its pure tests are unit tests as well.
const faultTree = "./test/faults"

// underFaults runs some of those suites. What is set in the environment wins over what is set here.
func underFaults(pattern, timeout string, env ...string) func(context.Context, io.Writer) result {
	return func(ctx context.Context, out io.Writer) result {
		prepared := checkAll(goCommand("run", "./test/run/prepare"))(ctx, out)
		if prepared.failed > 0 {
			return prepared
		}
		return goTest(ctx, out, unlessSet(os.LookupEnv, append(env, "CSI_TANDEM_E2E=1")), "-count=1", "-timeout="+timeout, "-run="+pattern, faultTree)
	}
}

// rights takes every right away in its turn. In a run of all end-to-end tests chance chooses a few.
func rights(ctx context.Context, out io.Writer) result {
	prepared := checkAll(goCommand("run", "./test/run/prepare"))(ctx, out)
	if prepared.failed > 0 {
		return prepared
	}
	return goTest(ctx, out, unlessSet(os.LookupEnv, []string{"CSI_TANDEM_FULL=1", "CSI_TANDEM_E2E=1"}), "-count=1", "-timeout=30m", "-run=TestEachRightIsNeeded", "./test/e2e")
}

// unlessSet leaves out what somebody has set to something else.
func unlessSet(lookup func(string) (string, bool), wanted []string) []string {
	var kept []string
	for _, assignment := range wanted {
		name, _, _ := strings.Cut(assignment, "=")
		if _, isSet := lookup(name); !isSet {
			kept = append(kept, assignment)
		}
	}
	return kept
}
