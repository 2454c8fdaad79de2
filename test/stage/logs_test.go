// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestOnlyLogsAreKept(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	write := func(name string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"bin/driver", "c1/driver.log", "c1/state/v/file", "controlplane/etcd/member/wal/0.wal", "controlplane/etcd.log", "controlplane/admin.kubeconfig"} {
		write(filepath.Join(dir, name))
	}
	data := filepath.Join(elsewhere, "data")
	write(data)
	// A volume that was published by a link; what it points to belongs to the driver.
	if err := os.Symlink(elsewhere, filepath.Join(dir, "c1", "mount.log")); err != nil {
		t.Fatal(err)
	}
	if err := keepLogs(dir); err != nil {
		t.Fatal(err)
	}
	var left []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		left = append(left, path[len(dir):])
		return err
	})
	if want := []string{"", "/c1", "/c1/driver.log", "/controlplane", "/controlplane/etcd.log"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left are %q, %v; want %q", left, err, want)
	}
	if _, err := os.Stat(data); err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
}
