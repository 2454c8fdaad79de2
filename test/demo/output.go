// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// output is where everything is told. When nobody reads it any more, as after `make demo | head`, that is taken for Ctrl-C:
// the default, to die at once, would leave behind what was started.
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

// Write never fails: that nobody listens must not keep anybody from cleaning up.
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

// isTerminal also says yes for other devices, where colours do no harm.
func (o *output) isTerminal() bool {
	info, err := o.file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
