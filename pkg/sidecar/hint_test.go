// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"bytes"
	"runtime/debug"
	"strings"
	"testing"
)

// TestHints: a slip is answered with what was meant, and what nothing is near to without a guess.
func TestHints(t *testing.T) {
	for args, want := range map[string]string{
		"--worker-thread=3":         "--worker-thread: there is no such flag; did you mean --worker-threads? --help lists them all",
		"--leader-elect":            "did you mean --leader-election?",
		"--leader_election":         "did you mean --leader-election?",
		"--CSI-address=x":           "did you mean --csi-address?",
		"--kubecofnig=x":            "did you mean --kubeconfig?",
		"--something-else-entirely": "--something-else-entirely: there is no such flag; --help lists them all",
		"--x":                       ": -x: there is no such flag; --help",
		"explian data":              `argument "explian": did you mean explain? there is no such command, only explain, completion;`,
		"complete bash":             `argument "complete": there is no such command, only explain, completion; without one the program runs as a sidecar; --help lists commands and flags`,
		"help me":                   `argument "help": there is no such command, only explain, completion;`,
		"--color=x true":            `argument "true": only flags are taken here, and the value of a switch needs an equals sign`,
		"--color=x explain data":    `argument "explain": a command stands first, before all flags: sample explain ...`,
		"completoin bash":           "did you mean completion?",
		"explain --naemspace=x":     "did you mean --namespace?",
	} {
		program := sample()
		program.Commands = []Command{{Name: "explain", Object: "THING"}}
		var stdout, stderr bytes.Buffer
		code := Main(t.Context(), program, append([]string{"sample"}, strings.Fields(args)...), &stdout, &stderr)
		if code != exitUsage || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: exit %d, %s", args, code, stderr.String())
		}
	}
}

func TestDescribeBuild(t *testing.T) {
	for want, settings := range map[string][]debug.BuildSetting{
		"go1.26.8, ":                                   nil,
		"commit 0123456789ab, go1.26.8, ":              {{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "false"}},
		"commit 0123456789ab with changes, go1.26.8, ": {{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}},
		"commit 01, go1.26.8, ":                        {{Key: "vcs.revision", Value: "01"}},
	} {
		if got := describeBuild(&debug.BuildInfo{GoVersion: "go1.26.8", Settings: settings}); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
