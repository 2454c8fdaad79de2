// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// expect wants one finding with these words in it, or none at all.
func expect(t *testing.T, found []Finding, want string) {
	t.Helper()
	switch {
	case want == "" && len(found) > 0:
		t.Errorf("complains of what is right: %v", found)
	case want != "" && len(found) == 0:
		t.Errorf("is silent, want %q", want)
	case want != "" && (len(found) != 1 || !strings.Contains(found[0].String(), want)):
		t.Errorf("says %v, want one finding with %q", found, want)
	}
}

func TestLoadRefusesWhatItCannotRead(t *testing.T) {
	if _, err := Load(fstest.MapFS{"pkg/a/a.go": {Data: []byte("package")}}); err == nil {
		t.Error("a file that does not parse was taken for a good one")
	}
	if _, err := Load(fstest.MapFS{}); err != nil {
		t.Errorf("an empty tree: %v", err)
	}
}

func TestLoadLeavesOutWhatNobodyWroteHere(t *testing.T) {
	tree, err := Load(fstest.MapFS{
		"bin/x.go":             {Data: []byte("package")},
		"a/testdata/y.go":      {Data: []byte("package")},
		".git/z":               {Mode: fs.ModePerm},
		"examples/driver/m.go": {Data: []byte("package main\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Files) != 1 || tree.Files[0].Path != "examples/driver/m.go" {
		t.Errorf("loaded %v", tree.Files)
	}
}
