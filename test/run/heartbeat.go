// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// silence is how long nothing may be written before somebody is told that work goes on.
const silence = 15 * time.Second

// pulse passes everything through and says so when nothing comes for a while: compiling is silent, and a first run compiles
// for minutes.
type pulse struct {
	mu    sync.Mutex
	out   io.Writer
	what  string
	begin time.Time
	last  time.Time
	done  chan struct{}
	ended sync.WaitGroup
}

func heartbeat(out io.Writer, what string) *pulse {
	now := time.Now()
	p := &pulse{out: out, what: what, begin: now, last: now, done: make(chan struct{})}
	p.ended.Go(p.beat)
	return p
}

func (p *pulse) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Now()
	return p.out.Write(data)
}

func (p *pulse) beat() {
	tick := time.NewTicker(silence / 3)
	defer tick.Stop()
	for {
		select {
		case <-p.done:
			return
		case now := <-tick.C:
			p.say(now)
		}
	}
}

func (p *pulse) say(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.last) < silence {
		return
	}
	p.last = now
	fmt.Fprintf(p.out, "    … %s: compiling or running, %s so far\n", p.what, now.Sub(p.begin).Round(time.Second))
}

func (p *pulse) stop() {
	close(p.done)
	p.ended.Wait()
}
