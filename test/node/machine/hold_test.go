// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/csi-tandem/csi-tandem/test/node/unified"
)

// TestHoldUnified: a machine begins on cgroups of version 2, also where the others here run on version 1, and who enters it is in a
// group below its root. Catches a mount over what is mounted there already, which the kernel refuses, and a first process that stays
// in the root, below which no group has a controller then.
func TestHoldUnified(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root makes machines")
	}
	if said, err := unified.Command(t.Context(), syscall.CLONE_NEWPID|syscall.CLONE_NEWCGROUP, "true").CombinedOutput(); err != nil {
		t.Skipf("there is no view with version 2 to be had: %v: %s", err, said)
	}
	// Not below what is covered inside.
	dir, err := os.MkdirTemp("/tmp", "tandem-hold-")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program, group := filepath.Join(dir, "machine"), filepath.Base(dir)
	if said, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	unified.Alone(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	first := unified.Command(ctx, syscall.CLONE_NEWPID, program, "hold", group, dir)
	var wrong strings.Builder
	first.Stderr = &wrong
	out, err := first.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unmake(t, group) })
	t.Cleanup(func() {
		cancel()
		_ = first.Wait() // It was killed.
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		cancel()
		_ = first.Wait()
		t.Fatalf("it says %q, %v: %s", line, err, wrong.String())
	}
	for _, tt := range []struct{ script, want string }{
		{"cat /proc/self/cgroup", "0::/system/errand\n"},
		{"cat /proc/1/cgroup", "0::/system\n"},
		{"cat /sys/fs/cgroup/cgroup.procs | wc -l", "0\n"},
		{"grep -c cgroup2 /proc/self/mounts", "1\n"},
		// A kubelet's own group, with what its root has.
		{"mkdir /sys/fs/cgroup/pods && cd /sys/fs/cgroup && cmp cgroup.controllers pods/cgroup.controllers && echo same", "same\n"},
	} {
		cmd := unified.Command(ctx, 0, program, "enter", fmt.Sprint(first.Process.Pid), group+"/system/errand", "sh", "-c", tt.script)
		if said, err := cmd.CombinedOutput(); err != nil || !strings.HasSuffix(string(said), tt.want) {
			t.Errorf("%s says %q, %v, want %q at its end", tt.script, said, err, tt.want)
		}
	}
}

// unmake removes the group of a machine that has ended.
func unmake(t *testing.T, group string) {
	t.Helper()
	script := "cd /sys/fs/cgroup && [ ! -d " + group + " ] || find " + group + " -depth -type d -exec rmdir {} +"
	var said []byte
	err := os.ErrDeadlineExceeded
	for deadline := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		said, err = unified.Command(context.WithoutCancel(t.Context()), 0, "sh", "-c", script).CombinedOutput()
	}
	if err != nil {
		t.Errorf("removing the group: %v: %s", err, said)
	}
}
