// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// eachFuzz is what each target gets, unless FUZZTIME says otherwise. What a longer run has found is in testdata/fuzz and is
// tried by every unit test.
const eachFuzz = 30 * time.Second

// target is one fuzz test. Go runs one at a time.
type target struct{ dir, name string }

var targetName = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\)`)

// fuzzTargets reads the sources, so that a new target cannot be forgotten here.
func fuzzTargets(root fs.FS) ([]target, error) {
	var targets []target
	err := fs.WalkDir(root, "pkg", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(root, file)
		if err != nil {
			return err
		}
		for _, found := range targetName.FindAllStringSubmatch(string(text), -1) {
			targets = append(targets, target{dir: "./" + path.Dir(file), name: found[1]})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for fuzz targets: %w", err)
	}
	return targets, nil
}

// fuzz gives each target its time, as many targets at once as there are processors: one worker each finds what all of them
// find for one target after the other, and compiling one fills the time of another.
func fuzz(ctx context.Context, out io.Writer) result {
	each := eachFuzz
	if asked := os.Getenv("FUZZTIME"); asked != "" {
		var err error
		if each, err = time.ParseDuration(asked); err != nil || each <= 0 {
			return result{failed: 1, note: fmt.Sprintf("FUZZTIME=%s is no duration such as 30s", asked)}
		}
	}
	targets, err := fuzzTargets(os.DirFS("."))
	if err != nil {
		return result{failed: 1, note: err.Error()}
	}
	if len(targets) == 0 {
		return result{failed: 1, note: "no fuzz target was found"}
	}
	results := make([]result, len(targets))
	var group errgroup.Group
	group.SetLimit(runtime.NumCPU())
	for i, t := range targets {
		group.Go(func() error {
			results[i] = t.fuzz(ctx, out, each)
			return nil
		})
	}
	_ = group.Wait() // each tells of itself in its result
	return sumOf(results)
}

func (t target) fuzz(ctx context.Context, out io.Writer, each time.Duration) result {
	if ctx.Err() != nil {
		return result{failed: 1, note: "interrupted"}
	}
	fmt.Fprintf(out, "    %s in %s, %s\n", t.name, t.dir, each)
	only := "^" + t.name + "$"
	// Minimizing takes a minute for each input by default, and is not what the time is for.
	var said bytes.Buffer
	r := goTest(ctx, io.MultiWriter(out, &said), nil, "-run="+only, "-fuzz="+only, "-fuzztime="+each.String(), "-fuzzminimizetime=100x", "-parallel=1", t.dir)
	if r.failed > 0 && ctx.Err() == nil && isEndOfTime(said.String()) {
		fmt.Fprintf(out, "    %s: the time ended in the middle of an input, which go test calls a failure; no input failed\n", t.name)
		return result{passed: 1}
	}
	if r.failed > 0 {
		r.note = fmt.Sprintf("%s in %s: the input is kept in its testdata/fuzz", t.name, t.dir)
	}
	return r
}

// sumOf adds results up, with the first note.
func sumOf(results []result) result {
	var sum result
	for _, r := range results {
		sum.passed, sum.failed, sum.skipped = sum.passed+r.passed, sum.failed+r.failed, sum.skipped+r.skipped
		if sum.note == "" {
			sum.note = r.note
		}
	}
	return sum
}

// isEndOfTime tells the one failure of go test that is none: the end of -fuzztime may meet a worker with an input in hand, and
// is then reported as an error of the target. What an input has done wrong is told with the file where that is kept.
func isEndOfTime(said string) bool {
	return strings.Contains(said, "\n    context deadline exceeded\n") &&
		!strings.Contains(said, "Failing input written to") && !strings.Contains(said, "panic:") && !strings.Contains(said, "terminated unexpectedly")
}
