// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package stage

import (
	"os/exec"
	"syscall"
)

// leash gives the child a group of its own. Only Linux can also end it with its parent.
func leash(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
