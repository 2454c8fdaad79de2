// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	terminalInterval = time.Second
	fileInterval     = 10 * time.Second
	keptLines        = 30
)

// progress reads what a verbose go build writes, one line for each package, and tells how far it is.
type progress struct {
	out      io.Writer
	terminal bool
	began    time.Time

	mu       sync.Mutex
	partial  string
	packages int
	last     []string
}

func newProgress(out io.Writer) *progress {
	return &progress{out: out, terminal: isTerminal(out), began: time.Now()}
}

// isTerminal also says yes for /dev/null, where it does no harm.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Write counts packages; anything else is what the compiler has to say.
func (p *progress) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := strings.Split(p.partial+string(data), "\n")
	p.partial = lines[len(lines)-1]
	for _, line := range lines[:len(lines)-1] {
		if isPackage(line) {
			p.packages++
		}
		p.last = append(p.last, line)
		p.last = p.last[max(0, len(p.last)-keptLines):]
	}
	return len(data), nil
}

func isPackage(line string) bool {
	return line != "" && !strings.ContainsAny(line, " \t:#")
}

// run reports at intervals until done is closed, and closes the returned channel after its last line.
func (p *progress) run(done <-chan struct{}) <-chan struct{} {
	ended := make(chan struct{})
	interval := fileInterval
	if p.terminal {
		interval = terminalInterval
	}
	go func() {
		defer close(ended)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				p.report()
			case <-done:
				if p.terminal {
					fmt.Fprintln(p.out)
				}
				return
			}
		}
	}()
	return ended
}

func (p *progress) report() {
	p.mu.Lock()
	text := fmt.Sprintf("%d packages compiled, %s", p.packages, time.Since(p.began).Round(time.Second))
	p.mu.Unlock()
	if p.terminal {
		// Back to the start of the line, and clear what was there.
		fmt.Fprintf(p.out, "\r%s\x1b[K", text)
		return
	}
	fmt.Fprintln(p.out, text)
}

// tail is the end of what the build wrote, for the error.
func (p *progress) tail() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.TrimSpace(strings.Join(append(p.last, p.partial), "\n"))
}
