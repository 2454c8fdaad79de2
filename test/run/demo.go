// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
)

// demo builds the story with progress shown and then steps aside: the story writes to the terminal itself, handles Ctrl-C
// itself, and speaks its own verdict. Only when it cannot be built, or ends without success, is a verdict added here.
func demo(ctx context.Context, out io.Writer) int {
	fmt.Fprintln(out, "==> building the demo (the first time this compiles for some minutes, later for seconds)")
	own, err := os.Executable()
	if err != nil {
		fmt.Fprintf(out, "FAIL: make demo: finding this program: %v\n", err)
		return 1
	}
	// Beside this one, which is not in the checkout if nothing can be written there.
	program := filepath.Join(filepath.Dir(own), "demo")
	if err := goCommand("build", "-o", program, "./test/demo")(ctx, out); err != nil {
		if ctx.Err() != nil {
			fmt.Fprintln(out, "interrupted while building the demo, everything stopped")
			return codeInterrupted
		}
		fmt.Fprintf(out, "FAIL: make demo: the demo does not build, see the lines above (%v)\n", err)
		return 1
	}
	story := exec.Command(program)
	story.Stdin, story.Stdout, story.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := story.Start(); err != nil {
		fmt.Fprintf(out, "FAIL: make demo: starting the story: %v\n", err)
		return 1
	}
	forward(story.Process)
	err = story.Wait()
	if err == nil {
		return 0
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == codeInterrupted {
		return codeInterrupted
	}
	fmt.Fprintf(out, "FAIL: make demo: the story did not come to its end (%v), see the lines above\n", err)
	if exit != nil && exit.ExitCode() > 0 {
		return exit.ExitCode()
	}
	return 1
}

// forward passes on SIGTERM and SIGHUP, which come to one process. Ctrl-C is only caught: the terminal sends it to the story as well,
// and this process has to outlive it.
func forward(story *os.Process) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		for s := range signals {
			if s != os.Interrupt {
				_ = story.Signal(s) // It may have ended on its own; then there is nothing to tell it.
			}
		}
	}()
}
