// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// mention is one place that names a case, and the tests that get there.
type mention struct {
	ref   ref
	dir   string
	file  string
	line  int
	tests []string
	about subject
}

// subject is the text that a subtest may be named after, and whether it stands where names of subtests do. Without a text the
// test as a whole is meant.
type subject struct {
	text   string
	isName bool
}

func (m mention) at() string { return fmt.Sprintf("%s:%d", m.file, m.line) }

// findings are all mentions of a tree, in order.
type findings struct{ mentions []mention }

// skipped are folders without tests that go would run.
var skipped = []string{"testdata", "vendor", "bin", "out"}

// find looks through the tests of one module; modules inside it have tests of their own that cannot be run from here.
func find(root string) (*findings, error) {
	files, err := testFiles(root)
	if err != nil {
		return nil, fmt.Errorf("looking for tests: %w", err)
	}
	var dirs []string
	for dir := range files {
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	all := &findings{}
	for _, dir := range dirs {
		fset := token.NewFileSet()
		room := &room{dir: dir, fset: fset}
		for _, file := range files[dir] {
			src, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
			if err != nil {
				return nil, fmt.Errorf("looking for tests: %w", err)
			}
			parsed, err := parser.ParseFile(fset, file, src, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return nil, fmt.Errorf("looking for tests: %w", err)
			}
			room.read(parsed)
		}
		all.mentions = append(all.mentions, room.mentions()...)
	}
	return all, nil
}

// testFiles are sorted by the folder they are in; paths are those of the module, with slashes.
func testFiles(root string) (map[string][]string, error) {
	files := map[string][]string{}
	err := filepath.WalkDir(root, func(p string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		local, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		local = filepath.ToSlash(local)
		if entry.IsDir() {
			if local != "." && isSkipped(p, local) {
				return filepath.SkipDir
			}
			return nil
		}
		name := entry.Name()
		if strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "_") && !strings.HasPrefix(name, ".") {
			files[path.Dir(local)] = append(files[path.Dir(local)], local)
		}
		return nil
	})
	return files, err
}

// isSkipped leaves out this program too: its own tests are made of ids and test no case.
func isSkipped(p, local string) bool {
	name := path.Base(local)
	if slices.Contains(skipped, name) || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || local == "test/cases" {
		return true
	}
	_, err := os.Stat(filepath.Join(p, "go.mod"))
	return err == nil
}

// remarks tell what looks like a case and is none, so that a slip in a number does not hide a test.
func (f *findings) remarks(all []listed) []string {
	known := map[string]bool{}
	for _, c := range all {
		known[c.id] = true
	}
	var remarks []string
	for _, m := range f.mentions {
		switch id := m.ref.in(m.dir); {
		case id == "":
			remarks = append(remarks, fmt.Sprintf("%s: whose is %v? write PW, PP or SW here", m.at(), m.ref))
		case !known[id]:
			remarks = append(remarks, fmt.Sprintf("%s: %s is not a case", m.at(), id))
		case len(m.tests) == 0:
			remarks = append(remarks, fmt.Sprintf("%s: no test gets to what names %s", m.at(), id))
		}
	}
	return remarks
}

// placesOf sorts by case what a test gets to.
func (f *findings) placesOf(selected []listed) map[string][]mention {
	wanted := map[string]bool{}
	for _, c := range selected {
		wanted[c.id] = true
	}
	places := map[string][]mention{}
	for _, m := range f.mentions {
		if id := m.ref.in(m.dir); wanted[id] && len(m.tests) > 0 {
			places[id] = append(places[id], m)
		}
	}
	return places
}
