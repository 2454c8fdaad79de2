// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// process is a child in a process group of its own that does not outlive us.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	// err is what Wait said; it may be read once done is closed.
	err error
}

// startProcess starts the command from a goroutine that keeps its OS thread until the child has ended: on Linux the
// parent-death signal is sent when the thread that forked ends, not when the process does.
func startProcess(cmd *exec.Cmd) (*process, error) {
	leash(cmd)
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) isRunning() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// kill ends the whole group at once and waits until the child has been reaped.
func (p *process) kill() {
	if p.isRunning() {
		// An error means that the group is gone already, which is what is wanted.
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	}
	<-p.done
}

// stop asks politely, and kills when the grace period is over.
func (p *process) stop(grace time.Duration) { p.end(syscall.SIGTERM, grace) }

func (p *process) end(signal syscall.Signal, grace time.Duration) {
	if p.isRunning() {
		_ = syscall.Kill(-p.cmd.Process.Pid, signal)
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.kill()
	}
}
