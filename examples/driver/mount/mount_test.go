// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
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
	t.Cleanup(func() { _ = Unmount(path, []string{source}) })
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
	if seen, err := Look(path, []string{other, source}); err != nil || seen != Mounted {
		t.Errorf("seen: %v, %v", seen, err)
	}
	must(t, Detach(path, []string{source}))
	must(t, Detach(path, []string{source}))
	if err := Bind.Attach(Target{Source: filepath.Join(dir, "missing"), Path: path}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no source: got %v", err)
	}
}

func TestBindFileOverLeftDirectory(t *testing.T) {
	dir := bindable(t)
	source, path := filepath.Join(dir, "source"), filepath.Join(dir, "path")
	must(t, os.WriteFile(source, []byte("data"), 0o600))
	must(t, os.Mkdir(path, 0o755))
	t.Cleanup(func() { _ = Unmount(path, []string{source}) })
	must(t, Bind.Attach(Target{Source: source, Path: path}))
	if got, err := os.ReadFile(path); err != nil || string(got) != "data" {
		t.Errorf("read %q, %v", got, err)
	}
	must(t, Detach(path, []string{source}))
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
	must(t, Detach(path, []string{source}))
	if _, err := os.Stat(source); err != nil {
		t.Errorf("the source went with the link: %v", err)
	}
	must(t, os.Mkdir(path, 0o755))
	must(t, os.WriteFile(filepath.Join(path, "precious"), nil, 0o600))
	if Link.Attach(Target{Source: source, Path: path}) == nil || Detach(path, []string{source}) == nil {
		t.Error("a directory with content was replaced or removed")
	}
}

// The wrong implementation says read-only and nothing else, and the kernel lifts what the file system of the content forbids.
func TestReadOnlyKeepsOtherRestrictions(t *testing.T) {
	dir := bindable(t)
	must(t, unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_NOATIME|unix.MS_NODIRATIME, ""))
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	source, path := filepath.Join(dir, "source"), filepath.Join(dir, "path")
	must(t, os.Mkdir(source, 0o755))
	must(t, Bind.Attach(Target{Source: source, Path: path, ReadOnly: true}))
	var before, after unix.Statfs_t
	must(t, errors.Join(unix.Statfs(source, &before), unix.Statfs(path, &after)))
	if after.Flags != before.Flags|unix.ST_RDONLY {
		t.Errorf("flags %#x, of the content %#x", after.Flags, before.Flags)
	}
	must(t, Detach(path, []string{source}))
}

// A folder with content is only for who says that it may be covered; an empty file only for a file.
func TestVacancy(t *testing.T) {
	dir := t.TempDir()
	folder, file, empty, full := filepath.Join(dir, "source"), filepath.Join(dir, "file"), filepath.Join(dir, "empty"), filepath.Join(dir, "full")
	must(t, errors.Join(os.Mkdir(folder, 0o755), os.WriteFile(file, []byte("x"), 0o600), os.WriteFile(empty, nil, 0o600), os.MkdirAll(filepath.Join(full, "x"), 0o755)))
	for _, tt := range []struct {
		target Target
		want   error
	}{
		{Target{Source: folder, Path: full}, ErrContent},
		{Target{Source: folder, Path: full, Covers: true}, nil},
		{Target{Source: file, Path: full}, ErrContent},
		{Target{Source: folder, Path: filepath.Join(full, "x")}, nil},
		{Target{Source: folder, Path: filepath.Join(full, "none")}, nil},
		{Target{Source: folder, Path: empty}, ErrContent},
		{Target{Source: folder, Path: empty, Covers: true}, ErrContent},
		{Target{Source: file, Path: empty}, nil},
		{Target{Source: folder, Path: file}, ErrContent},
		{Target{Source: file, Path: file}, ErrContent},
	} {
		if _, err := tt.target.look(); !errors.Is(err, tt.want) {
			t.Errorf("%+v: %v", tt.target, err)
		}
	}
}
