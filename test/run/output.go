// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// codeInterrupted is what shells return for a program that was interrupted.
const codeInterrupted = 130

// output takes a reader who leaves, as after `make test | head`, for Ctrl-C. The default, to die at once, would leave tests and
// control planes running.
type output struct {
	file *os.File
	lost context.CancelFunc

	mu   sync.Mutex
	gone bool
}

func newOutput(file *os.File, lost context.CancelFunc) *output {
	// Nobody listens to the channel; with it, a write that fails says so and does not end the process.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return &output{file: file, lost: lost}
}

// Write never fails: commands whose words nobody hears still have to be waited for.
func (o *output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gone {
		return len(data), nil
	}
	if _, err := o.file.Write(data); err != nil {
		o.gone = true
		o.lost()
	}
	return len(data), nil
}
