// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/csi-tandem/csi-tandem/test/node/cgroup"
	"github.com/csi-tandem/csi-tandem/test/node/unified"
)

const (
	// homeVariable makes the test's own binary a run that begins in this cgroup, in which it has the folder, and is killed.
	homeVariable   = "CSI_TANDEM_SWEEP_HOME"
	folderVariable = "CSI_TANDEM_SWEEP_FOLDER"
	// unifiedVariable tells it that it sees cgroups of version 2 only.
	unifiedVariable = "CSI_TANDEM_SWEEP_UNIFIED"
)

// TestSweepFromAnotherCgroup catches a clean-up that looks for the cgroups of a killed run below those that it is in itself: two logins have
// cgroups of their own, and what a run of the one has left stays for ever, with the processes in it, while the other says it is removed.
func TestSweepFromAnotherCgroup(t *testing.T) {
	if home := os.Getenv(homeVariable); home != "" {
		if err := runInCgroup(home, os.Getenv(folderVariable)); err != nil {
			fmt.Println(err)
		}
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("only root makes groups")
	}
	t.Run("as this machine is", sweepFromAnotherCgroup)
	if os.Getenv(unifiedVariable) != "" {
		return
	}
	t.Run("version 2", func(t *testing.T) {
		cmd := unified.Command(t.Context(), 0, os.Args[0], "-test.run=^TestSweepFromAnotherCgroup$", "-test.v")
		cmd.Env = append(os.Environ(), unifiedVariable+"=1")
		said, err := cmd.CombinedOutput()
		switch {
		case strings.Contains(string(said), "--- SKIP"), err != nil && !strings.Contains(string(said), "--- FAIL"):
			t.Skipf("there is no view with version 2 to be had: %v: %s", err, said)
		case err != nil || !strings.Contains(string(said), "--- PASS"):
			t.Errorf("%v: %s", err, said)
		}
	})
}

func sweepFromAnotherCgroup(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	home, dir := fmt.Sprintf("csi-tandem-test-home-%d-%08x", os.Getpid(), rand.Uint32()), t.TempDir()
	if err := cgroup.Make(home); err != nil {
		t.Skip("there are no groups to be made: ", err)
	}
	t.Cleanup(func() {
		if err := errors.Join(cgroup.Kill(home, time.Minute), cgroup.Remove(home)); err != nil {
			t.Error(err)
		}
	})
	run := exec.Command(os.Args[0], "-test.run=^TestSweepFromAnotherCgroup$")
	run.Env = append(os.Environ(), homeVariable+"="+home, folderVariable+"="+dir)
	out, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	_ = run.Process.Kill() // If it has ended it says so in its line.
	_ = run.Wait()         // It was killed.
	var group, process string
	if _, err := fmt.Sscanf(line, "runs %s %s\n", &group, &process); err != nil {
		t.Fatalf("the run says %q: %v", line, err)
	}
	if !isAlive(process) || len(foldersOf(group)) == 0 {
		t.Fatalf("nothing is left by the run: process %s, groups %q", process, foldersOf(group))
	}
	var said strings.Builder
	if err := Sweep(&said); err != nil || strings.Count(said.String(), "a run was killed") != 1 {
		t.Errorf("it says %q, %v", said.String(), err)
	}
	if left := foldersOf(group); len(left) > 0 {
		t.Errorf("still there: %q", left)
	}
	if isAlive(process) {
		t.Error("the process is still there")
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is there: %v", err)
	}
}

// runInCgroup leaves a process in a group of a run, which begins in a group of its own itself.
func runInCgroup(home, dir string) error {
	if err := cgroup.Join(home); err != nil {
		return err
	}
	mark, err := Announce(filepath.Join(dir, "n"), dir)
	if err != nil {
		return err
	}
	if err := cgroup.Make(mark.Group + "/system"); err != nil {
		return err
	}
	all, err := cgroup.Find()
	if err != nil {
		return err
	}
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		return err
	}
	for _, h := range all {
		if err := os.WriteFile(h.Path(mark.Group+"/system/cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0); err != nil {
			return errors.Join(err, cmd.Process.Kill())
		}
	}
	fmt.Println("runs", mark.Group, cmd.Process.Pid)
	return cmd.Wait()
}

// foldersOf looks by itself, wherever cgroups are mounted mostly.
func foldersOf(group string) []string {
	var found []string
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == group {
			found = append(found, path)
		}
		return nil
	})
	return found
}

// isAlive is not true for one that nobody has waited for yet.
func isAlive(process string) bool {
	status, err := os.ReadFile(filepath.Join("/proc", process, "stat"))
	return err == nil && !strings.Contains(string(status), ") Z ")
}

// TestSweepOfARunWithoutNodes: a run may be killed before its nodes are begun. Catches a clean-up that needs something of theirs.
func TestSweepOfARunWithoutNodes(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "controlplane", "etcd"), 0o700); err != nil {
		t.Fatal(err)
	}
	killed, err := Announce(filepath.Join(dir, "n"), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := killed.file.Close(); err != nil { // As the kernel does then.
		t.Fatal(err)
	}
	var said strings.Builder
	if err := Sweep(&said); err != nil || strings.Count(said.String(), dir) != 1 {
		t.Errorf("it says %q, %v", said.String(), err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is there: %v", err)
	}
	if err := Sweep(&said); err != nil || strings.Count(said.String(), dir) != 1 {
		t.Errorf("it was removed twice: %v, %q", err, said.String())
	}
}

// TestMarkStaysWithWhatIsLeft catches a run that forgets what it could not end: nobody else looks for it.
func TestMarkStaysWithWhatIsLeft(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := t.TempDir()
	mark, err := Announce(filepath.Join(dir, "n"), dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, isInUse := range []bool{true, false} {
		mark.isInUse = isInUse
		// Twice, as an end may be repeated.
		for range 2 {
			if err := mark.Erase(); err != nil {
				t.Error(err)
			}
		}
		if _, err := os.Stat(mark.path); (err == nil) != isInUse {
			t.Errorf("in use %t: %v", isInUse, err)
		}
	}
}

// TestSweepOfAFolderThatIsNotSeen: another login may have a folder for temporary files of its own, or a disk may not be mounted. Catches a
// clean-up that takes what it does not see for gone: the folder stays for ever. What is gone, or went with the machine's last life, has no mark.
func TestSweepOfAFolderThatIsNotSeen(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for _, tt := range []struct {
		name  string
		edit  func(*Mark)
		stays bool
	}{
		{"gone", func(*Mark) {}, false},
		{"on another file system", func(m *Mark) { m.Volume++ }, true},
		{"with what is around it", func(m *Mark) { m.Around = filepath.Join(m.Around, "none", "tandem") }, true},
		{"before a reboot", func(m *Mark) { m.Volume++; m.Boot = "another" }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			mark, err := Announce(filepath.Join(dir, "n"), dir)
			if err != nil {
				t.Fatal(err)
			}
			tt.edit(mark)
			content, err := json.Marshal(mark)
			if err := errors.Join(err, mark.file.Close(), os.WriteFile(mark.path, content, 0o600), os.RemoveAll(dir)); err != nil {
				t.Fatal(err)
			}
			var said strings.Builder
			if err := Sweep(&said); err != nil || strings.Contains(said.String(), "not seen from here") != tt.stays {
				t.Errorf("it says %q, %v", said.String(), err)
			}
			if _, err := os.Stat(mark.path); (err == nil) != tt.stays {
				t.Errorf("the mark: %v", err)
			}
			_ = os.Remove(mark.path) // It may be gone.
		})
	}
}
