// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"time"
)

const (
	// longFuzz is what each target gets when somebody asks for fuzzing, unless FUZZTIME says otherwise.
	longFuzz = 30 * time.Second
	// shortFuzz is what each gets in a run of everything, and allShort what all of them get together: a target more must
	// not make every run longer.
	shortFuzz = 3 * time.Second
	allShort  = 40 * time.Second
)

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

// fuzz gives each target the time that somebody asks for.
func fuzz(ctx context.Context, out io.Writer) result {
	each := longFuzz
	if asked := os.Getenv("FUZZTIME"); asked != "" {
		var err error
		if each, err = time.ParseDuration(asked); err != nil || each <= 0 {
			return result{failed: 1, note: fmt.Sprintf("FUZZTIME=%s is no duration such as 30s", asked)}
		}
	}
	return fuzzAll(ctx, out, func(int) time.Duration { return each })
}

// fuzzShort is fuzz for a run of everything. What a longer run has found is in testdata/fuzz and is tried by every unit test.
func fuzzShort(ctx context.Context, out io.Writer) result {
	return fuzzAll(ctx, out, shareOf)
}

// shareOf is the time of each of n targets.
func shareOf(n int) time.Duration {
	return min(shortFuzz, max(time.Second, (allShort/time.Duration(max(n, 1))).Truncate(time.Second/10)))
}

func fuzzAll(ctx context.Context, out io.Writer, share func(n int) time.Duration) result {
	targets, err := fuzzTargets(os.DirFS("."))
	if err != nil {
		return result{failed: 1, note: err.Error()}
	}
	if len(targets) == 0 {
		return result{failed: 1, note: "no fuzz target was found"}
	}
	var sum result
	each := share(len(targets))
	for _, t := range targets {
		if ctx.Err() != nil {
			sum.failed++
			sum.note = "interrupted"
			return sum
		}
		fmt.Fprintf(out, "    %s in %s, %s\n", t.name, t.dir, each)
		only := "^" + t.name + "$"
		// Minimizing takes a minute for each input by default, and is not what the time is for.
		r := goTest(ctx, out, nil, "-run="+only, "-fuzz="+only, "-fuzztime="+each.String(), "-fuzzminimizetime=100x", t.dir)
		sum.passed, sum.failed, sum.skipped = sum.passed+r.passed, sum.failed+r.failed, sum.skipped+r.skipped
		if sum.note == "" && r.failed > 0 {
			sum.note = fmt.Sprintf("%s in %s: the input is kept in its testdata/fuzz", t.name, t.dir)
		}
	}
	return sum
}
