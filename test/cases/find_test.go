// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// plant writes a tree of files.
func plant(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, src := range files {
		p := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(src), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func seen(f *findings) []string {
	var all []string
	for _, m := range f.mentions {
		all = append(all, fmt.Sprintf("%s %s %s %q", m.ref.in(m.dir), m.at(), strings.Join(m.tests, "+"), m.about.text))
	}
	return all
}

const tables = `package a

import "testing"

var rows = []struct{ name, in string }{
	{"S1 first", "x"},
	{in: "S9 y", name: "S2 second"},
}

// T35, T36: both.
func TestRows(t *testing.T) {
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {})
	}
	check(t)
}

func TestT40Checks(t *testing.T) { check(t) }

// What is said here (B001) counts for who calls it.
func check(t *testing.T) {
	t.Error("W3 nothing held")
}

func TestMore(t *testing.T) {
	// T41: the comment stands above a subtest.
	t.Run("subtest", func(t *testing.T) {})
	for _, way := range []string{"up"} {
		t.Run("T48 "+way, func(t *testing.T) {})
	}
	for name := range map[string]int{
		"T50 one": 1,
		"other":   2, // T51: beside it.
	} {
		_ = name
	}
}

func unused() string { return "T52 nobody" }

func Testing(t *testing.T) { _ = "T53 is no test" }
`

func TestFind(t *testing.T) {
	root := plant(t, map[string]string{
		"go.mod":                       "module m.example/x\n",
		"pkg/provision/a_test.go":      tables,
		"pkg/provision/a.go":           "package a\n\nconst product = \"T60 is not in a test\"\n",
		"pkg/snapshot/b_test.go":       "package b\n\nimport \"testing\"\n\nfunc TestW8(t *testing.T) { _ = `W9 raw\nmore` }\n",
		"test/cases/c_test.go":         "package c\n\nconst own = \"T61\"\n",
		"test/inner/go.mod":            "module m.example/inner\n",
		"test/inner/c_test.go":         "package c\n\nconst other = \"T62\"\n",
		"pkg/testdata/c_test.go":       "no Go at all",
		"pkg/provision/_draft_test.go": "no Go at all",
		".hidden/c_test.go":            "no Go at all",
	})
	found, err := find(root)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`S1 pkg/provision/a_test.go:6 TestRows "S1 first"`,
		`S9 pkg/provision/a_test.go:7 TestRows "S9 y"`,
		`S2 pkg/provision/a_test.go:7 TestRows "S2 second"`,
		`T35 pkg/provision/a_test.go:10 TestRows ""`,
		`T36 pkg/provision/a_test.go:10 TestRows ""`,
		`T40 pkg/provision/a_test.go:18 TestT40Checks ""`,
		`B001 pkg/provision/a_test.go:20 TestRows+TestT40Checks ""`,
		`PW-3 pkg/provision/a_test.go:22 TestRows+TestT40Checks "W3 nothing held"`,
		`T48 pkg/provision/a_test.go:29 TestMore "T48 "`,
		`T50 pkg/provision/a_test.go:32 TestMore "T50 one"`,
		`T41 pkg/provision/a_test.go:26 TestMore "subtest"`,
		`T51 pkg/provision/a_test.go:33 TestMore "other"`,
		`T52 pkg/provision/a_test.go:39  "T52 nobody"`,
		`T53 pkg/provision/a_test.go:41  "T53 is no test"`,
		`SW-8 pkg/snapshot/b_test.go:5 TestW8 ""`,
		`SW-9 pkg/snapshot/b_test.go:5 TestW8 "W9 raw\nmore"`,
	}
	if got := seen(found); !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestRemarks(t *testing.T) {
	root := plant(t, map[string]string{
		"go.mod": "module m.example/x\n",
		"test/e2e/a_test.go": "package e2e\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {\n\t_ = \"W8 whose\"\n\t_ = \"T107 too far\"\n" +
			"\t_ = \"B002 even\"\n\t_ = \"S1 fine\"\n}\n\nfunc lost() string { return \"S2 lost\" }\n",
	})
	all, err := load()
	if err != nil {
		t.Fatal(err)
	}
	found, err := find(root)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"test/e2e/a_test.go:6: whose is W8? write PW, PP or SW here",
		"test/e2e/a_test.go:7: T107 is not a case",
		"test/e2e/a_test.go:8: B002 is not a case",
		"test/e2e/a_test.go:12: no test gets to what names S2",
	}
	if got := found.remarks(all); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// A file that cannot be read would hide its cases; that is an error, and not a case without a test.
func TestFindBrokenFile(t *testing.T) {
	if _, err := find(plant(t, map[string]string{"pkg/a/a_test.go": "package a\nfunc {"})); err == nil {
		t.Error("no error")
	}
	if _, err := find(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("no error for a folder that is not there")
	}
}
