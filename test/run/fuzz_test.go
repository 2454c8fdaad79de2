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
