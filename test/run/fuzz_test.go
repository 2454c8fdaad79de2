// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"
	"testing"
	"testing/fstest"
)

func TestFuzzTargetsAreFound(t *testing.T) {
	source := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	got, err := fuzzTargets(fstest.MapFS{
		"pkg/a/a_test.go":   source("package a\n\nfunc FuzzOne(f *testing.F) {\n}\n\n// func FuzzNot(f *testing.F)\nfunc FuzzTwo(x *testing.F) {}\n"),
		"pkg/a/b/c_test.go": source("package b\n\nfunc FuzzThree(f *testing.F) {}\nfunc Fuzz(t *testing.T) {}\n"),
		"pkg/a/a.go":        source("package a\n\nfunc FuzzNeither(f *testing.F) {}\n"),
		"test/x_test.go":    source("package x\n\nfunc FuzzElsewhere(f *testing.F) {}\n"),
	})
	want := []target{{"./pkg/a", "FuzzOne"}, {"./pkg/a", "FuzzTwo"}, {"./pkg/a/b", "FuzzThree"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("found %v, %v", got, err)
	}
	if own, err := fuzzTargets(os.DirFS("../..")); err != nil || len(own) < 9 {
		t.Errorf("%d targets of ours, %v", len(own), err)
	}
}

func TestSumOfResults(t *testing.T) {
	got := sumOf([]result{{passed: 1}, {failed: 1, note: "first"}, {failed: 2, skipped: 1, note: "second"}})
	if got.passed != 1 || got.failed != 3 || got.skipped != 1 || got.note != "first" {
		t.Errorf("%+v", got)
	}
}

func TestFuzzTimeIsChecked(t *testing.T) {
	for _, text := range []string{"soon", "-1s", "0"} {
		t.Setenv("FUZZTIME", text)
		if r := fuzz(t.Context(), t.Output()); r.failed != 1 || r.note == "" {
			t.Errorf("FUZZTIME=%s: %+v", text, r)
		}
	}
}

// Catches a runner that is red because time was over, and one that takes a found fault for that.
func TestEndOfFuzzing(t *testing.T) {
	const late = "fuzz: elapsed: 30s, execs: 28886\n--- FAIL: FuzzX (30.10s)\n    context deadline exceeded\nFAIL\n"
	for said, want := range map[string]bool{
		late: true,
		late + "    Failing input written to testdata/fuzz/FuzzX/1\n": false,
		late + "panic: x\n": false,
		"--- FAIL: FuzzX (3s)\n    fuzzing process hung or terminated unexpectedly\n": false,
		"--- FAIL: FuzzX (3s)\n    x_test.go:1: wrong\nFAIL\n":                        false,
	} {
		if got := isEndOfTime(said); got != want {
			t.Errorf("%v for %q", got, said)
		}
	}
}
