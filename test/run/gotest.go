// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// endToEnd are the trees that need a control plane; everything else is a unit test.
var endToEnd = []string{"./test/bench", "./test/controlplane", "./test/e2e", "./test/kit/conform"}

func arch(ctx context.Context, out io.Writer) result {
	return goTest(ctx, out, nil, "./test/arch/...")
}

func unit(ctx context.Context, out io.Writer) result {
	packages, err := unitPackages(ctx)
	if err != nil {
		return result{failed: 1, note: err.Error()}
	}
	args := []string{"-shuffle=on"}
	if canRace(ctx) {
		args = append(args, "-race")
	} else {
		fmt.Fprintln(out, "    without -race: it needs a C compiler, and there is none here")
	}
	return goTest(ctx, out, nil, append(args, packages...)...)
}

// e2e builds the control plane first, where its progress can be seen; the tests then find it built.
func e2e(ctx context.Context, out io.Writer) result {
	prepared := checkAll(goCommand("run", "./test/run/prepare"))(ctx, out)
	if prepared.failed > 0 {
		return prepared
	}
	args := []string{"-count=1", "-timeout=40m"}
	for _, tree := range endToEnd {
		args = append(args, tree+"/...")
	}
	return goTest(ctx, out, []string{"CSI_TANDEM_E2E=1"}, args...)
}

// monitoring is a part of e2e, for those who change an alert or a panel.
func monitoring(ctx context.Context, out io.Writer) result {
	return goTest(ctx, out, []string{"CSI_TANDEM_E2E=1"}, "-count=1", "-timeout=30m", "-run=^TestMonitoring$", "./test/e2e")
}

// unitPackages asks go for all packages, so that a new one cannot be forgotten here.
func unitPackages(ctx context.Context) ([]string, error) {
	module, err := exec.CommandContext(ctx, "go", "list", "-m").Output()
	if err != nil {
		return nil, fmt.Errorf("asking for the module: %w", err)
	}
	listed, err := exec.CommandContext(ctx, "go", "list", "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("listing packages: %w", err)
	}
	return withoutEndToEnd(strings.TrimSpace(string(module)), strings.Fields(string(listed))), nil
}

func withoutEndToEnd(module string, packages []string) []string {
	var kept []string
	for _, p := range packages {
		local := "." + strings.TrimPrefix(p, module)
		isEndToEnd := false
		for _, tree := range endToEnd {
			isEndToEnd = isEndToEnd || local == tree || strings.HasPrefix(local, tree+"/")
		}
		if !isEndToEnd {
			kept = append(kept, p)
		}
	}
	return kept
}

// canRace: the race detector needs cgo, and cgo needs a compiler that is really there.
func canRace(ctx context.Context) bool {
	answer, err := exec.CommandContext(ctx, "go", "env", "CGO_ENABLED", "CC").Output()
	if err != nil {
		return false
	}
	lines := strings.Split(strings.TrimSpace(string(answer)), "\n")
	if len(lines) != 2 || lines[0] != "1" || strings.TrimSpace(lines[1]) == "" {
		return false
	}
	_, err = exec.LookPath(strings.Fields(lines[1])[0])
	return err == nil
}

// goTest reads the test events of go instead of its text, to count tests and to show in full only those that failed.
// A run in which no test ran at all has not passed.
func goTest(ctx context.Context, out io.Writer, env []string, args ...string) result {
	watched := heartbeat(out, "go test")
	defer watched.stop()
	cmd := inGroup(ctx, "go", append([]string{"test", "-json"}, args...)...)
	defer endGroup(cmd)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = watched
	events, err := cmd.StdoutPipe()
	if err != nil {
		return result{failed: 1, note: err.Error()}
	}
	if err := cmd.Start(); err != nil {
		return result{failed: 1, note: fmt.Sprintf("starting go test: %v", err)}
	}
	t := newTally(watched)
	if err := t.read(events); err != nil {
		fmt.Fprintf(watched, "    reading the events of go test: %v\n", err)
		t.sum.failed++
	}
	if err := cmd.Wait(); err != nil && t.sum.failed == 0 {
		t.sum.failed++
		t.sum.note = fmt.Sprintf("go test: %v", err)
	}
	if t.sum.passed+t.sum.failed == 0 {
		t.sum.failed++
		t.sum.note = "no test ran"
	}
	return t.sum
}

// figureMark begins lines that are for whoever watches, whether the test passes or not.
const figureMark = "» "

// event is one line of `go test -json`.
type event struct {
	Action, Package, Test, Output, ImportPath string
}

// tally turns events into counts, and keeps the output of a test until it is known whether anybody needs it.
type tally struct {
	out  io.Writer
	sum  result
	kept map[string][]string
	bad  map[string]bool
}

func newTally(out io.Writer) *tally {
	return &tally{out: out, kept: map[string][]string{}, bad: map[string]bool{}}
}

func (t *tally) read(events io.Reader) error {
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) == nil {
				t.take(e)
			} else {
				fmt.Fprintf(t.out, "%s", line)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (t *tally) take(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		if figures, ok := strings.CutPrefix(e.Output, figureMark); ok {
			fmt.Fprint(t.out, "    ", figures)
			return
		}
		t.kept[key] = append(t.kept[key], e.Output)
	case "build-output":
		fmt.Fprint(t.out, e.Output)
	case "pass", "skip", "fail":
		if e.Test == "" {
			t.packageEnds(e, key)
		} else {
			t.testEnds(e, key)
		}
		delete(t.kept, key)
	}
}

func (t *tally) testEnds(e event, key string) {
	switch e.Action {
	case "pass":
		t.sum.passed++
	case "skip":
		t.sum.skipped++
	case "fail":
		t.sum.failed++
		t.bad[e.Package] = true
		t.note(e)
		t.show(t.kept[key])
	}
}

// packageEnds shows go's own line for a package ("ok …"), and for one that failed all that no test claimed: a panic, a
// timeout, a leak found after the last test.
func (t *tally) packageEnds(e event, key string) {
	lines := t.kept[key]
	if e.Action == "fail" {
		if !t.bad[e.Package] {
			t.sum.failed++
			t.note(e)
		}
		for other, unfinished := range t.kept {
			if other != key && strings.HasPrefix(other, e.Package+" ") {
				t.show(unfinished)
				delete(t.kept, other)
			}
		}
		t.show(lines)
		return
	}
	for _, line := range lines {
		if strings.HasPrefix(line, "ok ") || strings.HasPrefix(line, "ok\t") {
			fmt.Fprint(t.out, line)
		}
	}
}

// note keeps the first failure: it is the innermost, and later ones often follow from it.
func (t *tally) note(e event) {
	if t.sum.note == "" {
		t.sum.note = strings.TrimSpace("first look at " + e.Package + " " + e.Test)
	}
}

// show leaves out the lines in which go test says which test it turns to.
func (t *tally) show(lines []string) {
	for _, line := range lines {
		if !strings.HasPrefix(line, "=== ") {
			fmt.Fprint(t.out, line)
		}
	}
}
