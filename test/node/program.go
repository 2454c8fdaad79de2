// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
)

// program is a child process that can be started again, into the same log.
type program struct {
	name string
	path string
	args []string
	env  []string
	log  string
	// stdout replaces the log for what it prints, and flags are namespaces that it gets.
	stdout *os.File
	flags  uintptr

	mu     sync.Mutex
	cmd    *exec.Cmd
	done   chan struct{}
	wanted bool
}

func (p *program) start() error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", p.name, err)
	}
	defer log.Close() // The child has its own.
	cmd := exec.Command(p.path, p.args...)
	cmd.Dir = filepath.Dir(p.log)
	cmd.Env = append(plain(os.Environ()), p.env...)
	cmd.Stdout, cmd.Stderr = log, log
	if p.stdout != nil {
		cmd.Stdout = p.stdout
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: p.flags}
	done, started := make(chan struct{}), make(chan error, 1)
	go func() {
		// The signal of a parent's death is sent when the thread ends that forked, not when the process does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // How it ended is in its log.
			close(done)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("starting %s: %w", p.name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd, p.done, p.wanted = cmd, done, false
	return nil
}

func (p *program) id() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

func (p *program) isRunning() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd != nil && !isClosed(p.done)
}

// hasDied is true for an end that nobody wanted.
func (p *program) hasDied() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd != nil && !p.wanted && isClosed(p.done)
}

func isClosed(done chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// expect says that an end that comes is wanted.
func (p *program) expect() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = true
}

// kill ends it at once, with all of its group, and waits until it is gone.
func (p *program) kill() {
	p.expect()
	if p.isRunning() {
		// An error means that it is gone already, which is what is wanted.
		_ = syscall.Kill(-p.id(), syscall.SIGKILL)
		<-p.done
	}
}

// plain drops what would steer the programs from outside.
func plain(environment []string) []string {
	var kept []string
	for _, entry := range environment {
		name, _, _ := strings.Cut(entry, "=")
		switch {
		case strings.HasPrefix(name, "KUBE"), strings.HasPrefix(name, "CONTAINERD_"), name == "PATH", name == "GODEBUG":
		case strings.HasSuffix(strings.ToLower(name), "_proxy"):
		default:
			kept = append(kept, entry)
		}
	}
	return kept
}

// tail is the end of a log, enough to see why its writer ended.
func tail(path string) string {
	const lines = 15
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
