// SPDX-License-Identifier: Apache-2.0

// Package unified gives tests a view of this machine that has cgroups of version 2 only, whatever the machine itself uses, and lets one
// test at a time change what the root of those passes on.
//
// It must not know what is tested there.
//
// It stands outside the walks, below the tests of real nodes.
package unified

import (
	"context"
	"net"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

const script = `mount --make-rprivate / && { umount --recursive --lazy /sys/fs/cgroup; mount -t cgroup2 cgroup2 /sys/fs/cgroup; } && exec "$0" "$@"`

// Command runs there, in a mount namespace of its own and in those of the flags.
func Command(ctx context.Context, flags uintptr, command ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", script}, command...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | flags}
	return cmd
}

// Alone waits until no other test on this machine looks at what the root of version 2 passes on, or changes it. The name is one in
// memory, and goes with its holder.
func Alone(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		holder, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", "@csi-tandem-cgroup-tests")
		if err == nil {
			t.Cleanup(func() { _ = holder.Close() })
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("another test keeps the cgroups to itself: ", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
