// SPDX-License-Identifier: Apache-2.0

// Command cases is what stands behind `make cases`: a table of what was promised, where it is tested, and with which result.
//
// It owns the list of the acceptance cases, and how a test says which of them it is about: by an id that begins a string
// (the name of a row, of a subtest, or what is said when it fails), that is part of the name of a test, or that stands in a
// comment, in brackets or before a colon.
// It must not know what a case demands; that is the business of the tests.
// It stands outside the walks, and runs only tests that name a case.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

const (
	exitFailed = 1
	exitUsage  = 2
)

// options are what a call may say.
type options struct {
	root     string
	selected string
	complete string
	listOnly bool
	endToEnd bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, out, progress io.Writer) int {
	o, err := parse(args, progress)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err == nil {
		err = show(ctx, o, out, progress)
	}
	var bad *verdict
	switch {
	case err == nil:
		return 0
	case errors.As(err, &bad):
		fmt.Fprintf(out, "FAIL: %v\n", bad)
		return exitFailed
	}
	fmt.Fprintf(progress, "cases: %v\n", err)
	return exitUsage
}

func parse(args []string, progress io.Writer) (options, error) {
	o := options{endToEnd: os.Getenv("CSI_TANDEM_E2E") == "1"}
	flags := flag.NewFlagSet("cases", flag.ContinueOnError)
	flags.SetOutput(progress)
	flags.StringVar(&o.root, "root", ".", "the module whose tests are looked through")
	flags.StringVar(&o.selected, "run", "", "only these `ids`, groups or prefixes, with commas: T35,S,B00")
	flags.StringVar(&o.complete, "complete", "", "these `groups` have to be complete: a case without a test is a failure")
	flags.BoolVar(&o.listOnly, "list", false, "run nothing, only say where each case is tested")
	if err := flags.Parse(args); err != nil {
		return o, fmt.Errorf("parsing the command line: %w", err)
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("what is %q? ids are given with -run", flags.Arg(0))
	}
	return o, nil
}

// verdict is an outcome of the tests, in contrast to an error that kept them from running.
type verdict struct{ said []string }

func (v *verdict) Error() string { return strings.Join(v.said, "; ") }

func show(ctx context.Context, o options, out, progress io.Writer) error {
	all, err := load()
	if err != nil {
		return err
	}
	selected, err := choose(all, o.selected)
	if err != nil {
		return err
	}
	due, err := groupsNamed(o.complete)
	if err != nil {
		return err
	}
	found, err := find(o.root)
	if err != nil {
		return err
	}
	for _, remark := range found.remarks(all) {
		fmt.Fprintln(progress, "note:", remark)
	}
	places := found.placesOf(selected)
	ran := &outcomes{}
	if !o.listOnly {
		if ran, err = runTests(ctx, o, places, progress); err != nil {
			return err
		}
	}
	rows := judge(selected, places, ran)
	writeTable(out, rows)
	writeSummary(out, rows)
	return judgeAll(rows, ran, due)
}

// judgeAll: the run is good when no test failed, and each case of the groups that have to be complete has a test.
func judgeAll(rows []row, ran *outcomes, due []group) error {
	var bad verdict
	var failed, missing []string
	for _, r := range rows {
		if r.result == resultFailed {
			failed = append(failed, r.id)
		}
		for _, g := range due {
			if r.result == resultNone && r.group == g.prefix {
				missing = append(missing, r.id)
			}
		}
	}
	if len(failed) > 0 {
		bad.said = append(bad.said, "failed: "+strings.Join(failed, " "))
	}
	if others := ran.failedAside(rows); len(others) > 0 {
		bad.said = append(bad.said, "failed: "+strings.Join(others, " "))
	}
	if len(missing) > 0 {
		bad.said = append(bad.said, "without a test: "+strings.Join(missing, " "))
	}
	if len(bad.said) > 0 {
		return &bad
	}
	return nil
}
