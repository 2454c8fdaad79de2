// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func data(t *testing.T, b *Backend, id string) string {
	t.Helper()
	path, err := b.DataPath(id)
	must(t, err)
	return path
}

func content(t *testing.T, path string) string {
	t.Helper()
	c, err := os.ReadFile(path)
	must(t, err)
	return string(c)
}

func TestSnapshotIsAPointInTime(t *testing.T) {
	b := open(t, twoZones(t.TempDir()))
	v := volume(t, b, VolumeRequest{Name: "v", Required: mib})
	file := filepath.Join(data(t, b, v.ID), "file")
	must(t, os.WriteFile(file, []byte("before"), 0o644))
	s := snapshot(t, b, "s", v.ID)
	must(t, os.WriteFile(file, []byte("after"), 0o644))
	// The same name is the same snapshot, not a new copy.
	if again := snapshot(t, b, "s", v.ID); again.ID != s.ID {
		t.Fatalf("a second snapshot %s beside %s", again.ID, s.ID)
	}
	other := volume(t, b, VolumeRequest{Name: "other", Required: mib})
	_, err := b.CreateSnapshot(SnapshotRequest{Name: "s", Volume: other.ID})
	wantError(t, err, ErrConflict)

	clone := volume(t, b, VolumeRequest{Name: "clone", Source: Source{Volume: v.ID}})
	must(t, b.DeleteVolume(v.ID))
	restored := volume(t, b, VolumeRequest{Name: "restored", Source: Source{Snapshot: s.ID}})
	if got := content(t, filepath.Join(data(t, b, restored.ID), "file")); got != "before" {
		t.Errorf("restored %q, want %q", got, "before")
	}
	if got := content(t, filepath.Join(data(t, b, clone.ID), "file")); got != "after" {
		t.Errorf("cloned %q, want %q", got, "after")
	}
}

func TestCopyKeepsWhatFilesAre(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
	old := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	must(t, os.MkdirAll(filepath.Join(from, "closed"), 0o755))
	must(t, os.WriteFile(filepath.Join(from, "closed", "run"), []byte("#!"), 0o600))
	must(t, os.Chmod(filepath.Join(from, "closed", "run"), 0o750|fs.ModeSetuid))
	must(t, os.Symlink("closed/run", filepath.Join(from, "link")))
	must(t, os.Symlink("/nowhere", filepath.Join(from, "dangling")))
	must(t, unix.Mkfifo(filepath.Join(from, "fifo"), 0o600))
	must(t, os.Chtimes(filepath.Join(from, "closed", "run"), old, old))
	must(t, os.Chtimes(filepath.Join(from, "closed"), old, old))
	must(t, os.Chmod(filepath.Join(from, "closed"), 0o555))
	t.Cleanup(func() {
		_ = os.Chmod(filepath.Join(from, "closed"), 0o755)
		_ = os.Chmod(filepath.Join(to, "closed"), 0o755)
	})

	must(t, copyTree(from, to))
	for _, name := range []string{"closed", "closed/run", "link", "dangling", "fifo"} {
		x, err := os.Lstat(filepath.Join(from, name))
		must(t, err)
		y, err := os.Lstat(filepath.Join(to, name))
		must(t, err)
		if x.Mode() != y.Mode() || x.Mode().Type() != fs.ModeSymlink && !x.ModTime().Equal(y.ModTime()) {
			t.Errorf("%s: %v %v, want %v %v", name, y.Mode(), y.ModTime(), x.Mode(), x.ModTime())
		}
	}
	if got := content(t, filepath.Join(to, "link")); got != "#!" {
		t.Errorf("behind the link is %q", got)
	}
}

func TestBlockVolumesAreSparseAndCopied(t *testing.T) {
	o := twoZones(t.TempDir())
	o.Pools[0].Capacity = 1 << 40
	b := open(t, o)
	v := volume(t, b, VolumeRequest{Name: "v", Required: 10 << 30, Block: true})
	f, err := os.OpenFile(data(t, b, v.ID), os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteAt([]byte("far out"), 5<<30)
	must(t, err)
	must(t, f.Close())
	s := snapshot(t, b, "s", v.ID)
	larger := volume(t, b, VolumeRequest{Name: "larger", Required: 11 << 30, Block: true, Source: Source{Snapshot: s.ID}})
	info, err := os.Stat(data(t, b, larger.ID))
	must(t, err)
	if info.Size() != 11<<30 {
		t.Errorf("%d bytes, want %d", info.Size(), 11<<30)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Blocks*512 > mib {
		t.Errorf("the copy is not sparse: %+v", info.Sys())
	}
	f, err = os.Open(data(t, b, larger.ID))
	must(t, err)
	defer f.Close()
	got := make([]byte, 7)
	_, err = f.ReadAt(got, 5<<30)
	must(t, err)
	if string(got) != "far out" {
		t.Errorf("copied %q", got)
	}
}
