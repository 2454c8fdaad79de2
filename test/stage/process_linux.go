// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"os/exec"
	"syscall"
)

// leash gives the child a group of its own, and lets the kernel kill it when we die without having ended it.
func leash(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
