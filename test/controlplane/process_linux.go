// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"os/exec"
	"syscall"
)

// leash gives the child a group of its own, so that a signal reaches what it starts, and lets the kernel kill it when
// we die without having stopped it (a test that times out, a kill -9).
func leash(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
