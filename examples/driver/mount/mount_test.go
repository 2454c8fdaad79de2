// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// bindable skips where mounts do not work. The folder has a name that the
// kernel's table writes with escapes.
func bindable(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "with a space\tand a tab")
	must(t, os.Mkdir(dir, 0o755))
	if Probe(dir) != Bind {
		t.Skip("this process may not mount")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("probing left %v behind (%v)", left, err)
	}
	return dir
}

func TestBind(t *testing.T) {
	dir := bindable(t)
	source, other, path := filepath.Join(dir, "source"), filepath.Join(dir, "other"), filepath.Join(dir, "path")
	must(t, os.Mkdir(source, 0o755))
	must(t, os.Mkdir(other, 0o755))
	t.Cleanup(func() { _ = Unmount(path) })
	must(t, Bind.Attach(Target{Source: source, Path: path}))
	must(t, Bind.Attach(Target{Source: source, Path: path}))
	if err := Bind.Attach(Target{Source: other, Path: path}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("something else is there: got %v", err)
	}
	// The step that a kill between the two mounts leaves out is made up for.
	must(t, Bind.Attach(Target{Source: source, Path: path, ReadOnly: true}))
	if err := os.WriteFile(filepath.Join(path, "file"), nil, 0o600); err == nil {
		t.Error("a read-only path was written to")
	}
	if mounted, err := IsMounted(path); err != nil || !mounted {
		t.Errorf("mounted: %v, %v", mounted, err)
	}
	must(t, Detach(path))
	must(t, Detach(path))
	if err := Bind.Attach(Target{Source: filepath.Join(dir, "missing"), Path: path}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no source: got %v", err)
	}
}

func TestBindFileOverLeftDirectory(t *testing.T) {
	dir := bindable(t)
	source, path := filepath.Join(dir, "source"), filepath.Join(dir, "path")
	must(t, os.WriteFile(source, []byte("data"), 0o600))
	must(t, os.Mkdir(path, 0o755))
	t.Cleanup(func() { _ = Unmount(path) })
	must(t, Bind.Attach(Target{Source: source, Path: path}))
	if got, err := os.ReadFile(path); err != nil || string(got) != "data" {
		t.Errorf("read %q, %v", got, err)
	}
	must(t, Detach(path))
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the path is still there: %v", err)
	}
}

func TestLink(t *testing.T) {
	dir := t.TempDir()
	source, path := filepath.Join(dir, "source"), filepath.Join(dir, "path")
	must(t, os.Mkdir(source, 0o755))
	must(t, os.Mkdir(path, 0o755))
	for range 2 {
		must(t, Link.Attach(Target{Source: source, Path: path}))
	}
	if to, err := os.Readlink(path); err != nil || to != source {
		t.Errorf("links to %q, %v", to, err)
	}
	must(t, Detach(path))
	if _, err := os.Stat(source); err != nil {
		t.Errorf("the source went with the link: %v", err)
	}
	must(t, os.Mkdir(path, 0o755))
	must(t, os.WriteFile(filepath.Join(path, "precious"), nil, 0o600))
	if Link.Attach(Target{Source: source, Path: path}) == nil || Detach(path) == nil {
		t.Error("a directory with content was replaced or removed")
	}
}
