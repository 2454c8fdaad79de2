// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// coverVariable tells the test's own binary that it may cover folders, and which one.
const coverVariable = "CSI_TANDEM_COVER"

// TestCover: what is to be seen inside is seen although it is in a covered folder, through a link too, and what lies beside it is not.
// Catches programs in a cache or on a disk below /mnt or /var/lib that are not there any more when they are to be started.
func TestCover(t *testing.T) {
	if base := os.Getenv(coverVariable); base != "" {
		coverInside(t, base)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("only root mounts")
	}
	base := t.TempDir()
	for _, file := range []string{"covered/own/seen", "covered/own/in/seen", "covered/other/hidden", "elsewhere/seen"} {
		path := filepath.Join(base, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("covered/own", filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestCover$", "-test.v")
	cmd.Env = append(os.Environ(), coverVariable+"="+base)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	said, err := cmd.CombinedOutput()
	switch {
	case strings.Contains(string(said), "--- SKIP"):
		t.Skip(string(said))
	case err != nil:
		t.Errorf("%v: %s", err, said)
	}
}

func coverInside(t *testing.T, base string) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Skip(err)
	}
	covered = []string{filepath.Join(base, "covered"), "/var/lib"}
	shown := []string{filepath.Join(base, "covered/own/in"), filepath.Join(base, "link"), filepath.Join(base, "elsewhere")}
	if err := cover(shown); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]bool{"covered/own/seen": true, "covered/own/in/seen": true, "link/seen": true, "elsewhere/seen": true, "covered/other": false} {
		if _, err := os.Stat(filepath.Join(base, file)); (err == nil) != want {
			t.Errorf("%s: %v, seen: want %t", file, err, want)
		}
	}
}
