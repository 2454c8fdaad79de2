// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package controlplane

import (
	"os/exec"
	"syscall"
)

// leash gives the child a group of its own. Only Linux can also tie its life to ours.
func leash(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
