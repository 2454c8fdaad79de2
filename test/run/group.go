// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os/exec"
	"syscall"
	"time"
)

// patience is what processes get to clean up after an interrupt, before they are killed.
const patience = 30 * time.Second

// inGroup is a command that gets an interrupt together with everything it started. What it leaves behind all the same is for
// endGroup: go test and go run, when they die, leave running what they ran, and with it a whole control plane.
func inGroup(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = patience
	return cmd
}

// endGroup ends what is left of a command's group after it was waited for.
func endGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // Mostly nobody is left, which is the error.
	}
}
