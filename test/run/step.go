// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// step is one named part of a run.
type step struct {
	name string
	says string
	do   func(ctx context.Context, out io.Writer) result
}

// result counts what a step looked at: tests where it runs tests, else the one thing that it checked.
type result struct {
	step                    step
	passed, failed, skipped int
	took                    time.Duration
	note                    string
}

// groups are names for several steps.
var groups = map[string][]string{
	"test":   {"verify-light", "unit", "fuzz", "sanity", "image", "e2e", "faults-short", "pods"},
	"verify": {"fmt", "vet", "arch", "tidy", "clean-tree"},
}

func steps() []step {
	return []step{
		{"verify-light", "formatting and go vet of the whole main module", checkAll(formatted, vetted)},
		{"fmt", "gofmt finds nothing to change", checkAll(formatted)},
		{"vet", "go vet of the whole main module", checkAll(vetted)},
		{"tidy", "go.mod and go.sum say what the code needs", checkAll(goCommand("mod", "tidy", "-diff"))},
		{"clean-tree", "nothing is left uncommitted", checkAll(cleanTree)},
		{"arch", "the rules of the house, as tests", arch},
		{"unit", "tables, rooms with their crash rows, and the rules of the house", unit},
		{"fuzz", "each fuzz target for FUZZTIME, which is 30s", fuzz},
		{"sanity", "csi-sanity against the example driver, or against ENDPOINT", checkAll(goCommand("run", "-C", "test/sanity", "."))},
		{"image", "what make image writes, with small programs instead of ours", checkAll(goCommand("test", "-C", "deploy/image", "./..."))},
		{"e2e", "both binaries beside a real driver on a real control plane", e2e},
		{"monitoring", "alerts and dashboard, evaluated on what both programs show while faults are staged", monitoring},
		{"faults-short", "crashes, random faults and hidden secrets, each in its short form", underFaults("Test", "30m")},
		{"pods", "volumes in real pods, where real nodes can be and are compiled soon", podsIfPossible},
		{"e2e-pods", "volumes in real pods, on real nodes", pods},
		{"crash", "both sidecars ended around every effect of every kind of life, in every way", underFaults("TestCrashAtEveryStep", "60m", "CSI_TANDEM_FULL=1")},
		{"faults", "1,000 objects under random faults, or CSI_TANDEM_OBJECTS; CSI_TANDEM_SEED plays a run again", underFaults("TestRandomFaults", "120m", "CSI_TANDEM_FULL=1")},
		{"soak", "churn and faults for 20 minutes, or CSI_TANDEM_SOAK; memory and goroutines stay flat", underFaults("TestSoak", "24h", "CSI_TANDEM_SOAK=20m")},
		{"rights", "each right taken away in its turn, and something fails", rights},
		{"demo", "the story that the examples tell, played", nil},
	}
}

// pick resolves names and groups; an unknown name is an error, never a step that is left out in silence.
func pick(names []string) ([]step, error) {
	if len(names) == 0 {
		return nil, fmt.Errorf("which steps?")
	}
	known := map[string]step{}
	for _, s := range steps() {
		known[s.name] = s
	}
	var picked []step
	for _, name := range names {
		members, ok := groups[name]
		if !ok {
			members = []string{name}
		}
		for _, member := range members {
			s, ok := known[member]
			if !ok {
				return nil, fmt.Errorf("no step is called %q", member)
			}
			if s.do == nil && len(names) > 1 {
				return nil, fmt.Errorf("%q runs alone", member)
			}
			picked = append(picked, s)
		}
	}
	return picked, nil
}

func describe() string {
	var b strings.Builder
	for _, s := range steps() {
		fmt.Fprintf(&b, "  %-13s %s\n", s.name, s.says)
	}
	for _, group := range []string{"test", "verify"} {
		fmt.Fprintf(&b, "  %-13s = %s\n", group, strings.Join(groups[group], ", "))
	}
	return b.String()
}

func (s step) timed(ctx context.Context, out io.Writer) result {
	begin := time.Now()
	r := s.do(ctx, out)
	r.step, r.took = s, time.Since(begin)
	return r
}

// check is one thing that holds or does not.
type check func(ctx context.Context, out io.Writer) error

func checkAll(checks ...check) func(context.Context, io.Writer) result {
	return func(ctx context.Context, out io.Writer) result {
		var r result
		for _, c := range checks {
			if err := c(ctx, out); err != nil {
				fmt.Fprintf(out, "    %v\n", err)
				r.failed++
				r.note = err.Error()
				continue
			}
			r.passed++
		}
		return r
	}
}

// goCommand lets go speak for itself; what it writes is shown as it comes.
func goCommand(args ...string) check {
	return func(ctx context.Context, out io.Writer) error {
		said := "go " + strings.Join(args, " ")
		watched := heartbeat(out, said)
		defer watched.stop()
		cmd := inGroup(ctx, "go", args...)
		defer endGroup(cmd)
		cmd.Stdout, cmd.Stderr = watched, watched
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", said, err)
		}
		return nil
	}
}

func vetted(ctx context.Context, out io.Writer) error {
	return goCommand("vet", "./...")(ctx, out)
}

// formatted asks for the files of the repository only, so that a file somebody left in bin/ does not matter.
func formatted(ctx context.Context, out io.Writer) error {
	listed, err := exec.CommandContext(ctx, "git", "ls-files", "--cached", "--others", "--exclude-standard", "*.go").Output()
	if err != nil {
		return fmt.Errorf("listing Go files: %w", err)
	}
	files := strings.Fields(string(listed))
	if len(files) == 0 {
		return fmt.Errorf("listing Go files: git knows of none here")
	}
	unformatted, err := exec.CommandContext(ctx, "gofmt", append([]string{"-l"}, files...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("gofmt -l: %w: %s", err, unformatted)
	}
	if len(unformatted) > 0 {
		fmt.Fprintf(out, "%s", unformatted)
		return fmt.Errorf("these files want gofmt: %s", strings.Join(strings.Fields(string(unformatted)), " "))
	}
	return nil
}

func cleanTree(ctx context.Context, out io.Writer) error {
	status, err := exec.CommandContext(ctx, "git", "status", "--porcelain").Output()
	if err != nil {
		return fmt.Errorf("git status: %w", err)
	}
	if len(status) > 0 {
		fmt.Fprintf(out, "%s", status)
		return fmt.Errorf("the tree has changes that are not committed")
	}
	return nil
}
