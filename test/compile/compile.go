// SPDX-License-Identifier: Apache-2.0

// Package compile runs go build for somebody who waits. It owns that a word is said now and then, and that a build which is interrupted
// leaves no process, and no file but below the folder that it was given.
//
// It must not know what is compiled.
//
// It stands outside the walks, below the real nodes and the stage.
package compile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// silence is how long a build may say nothing before somebody who waits is told that it goes on.
	silence = 10 * time.Second
	// patience is for go to end when it is interrupted.
	patience = 30 * time.Second
)

// Job is one go build.
type Job struct {
	// Name is what it is called while it goes on.
	Name string
	// Source is the folder in which go runs.
	Source string
	// Work is a folder in which go gets one to work in. If this process is killed, that goes with it.
	Work string
	// Args follow "go build -trimpath", and Env is added to the environment.
	Args, Env []string
	Out       io.Writer
}

// Run compiles. An error has in it what go said.
func Run(ctx context.Context, job Job) error {
	work, err := os.MkdirTemp(job.Work, "work-")
	if err != nil {
		return fmt.Errorf("making a folder to compile in: %w", err)
	}
	defer os.RemoveAll(work)
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-trimpath"}, job.Args...)...)
	cmd.Dir = job.Source
	cmd.Env = slices.Concat(os.Environ(), []string{"GOTMPDIR=" + work}, job.Env)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	// go has children, and they hold what it says. It ends when this process does, however that ends.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	// It waits for its compilers when it is interrupted, and not when it is killed.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = patience
	done := make(chan error, 1)
	go func() {
		// The signal of a parent's death is sent when the thread ends that forked, not when the process does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		done <- cmd.Run()
	}()
	err = job.await(done)
	if ctx.Err() != nil && cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // Mostly nobody is left, which is the error.
	}
	if err != nil {
		return errors.Join(context.Cause(ctx), err, errors.New(strings.TrimSpace(said.String())))
	}
	return nil
}

func (j Job) await(done <-chan error) error {
	began := time.Now()
	ticker := time.NewTicker(silence)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			fmt.Fprintf(j.Out, "compiling %s, %s so far\n", j.Name, time.Since(began).Round(time.Second))
		case err := <-done:
			return err
		}
	}
}
