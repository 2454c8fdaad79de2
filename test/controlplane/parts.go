// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

const stopGrace = 8 * time.Second

// stoppingOrder has clients before the servers they talk to, so that nobody waits for an answer that cannot come.
var stoppingOrder = [][]Part{{Scheduler, ControllerManager}, {APIServer}, {Etcd}}

// PartError says which part failed, and what it wrote last.
type PartError struct {
	Part Part
	Err  error
	Log  string
}

func (e *PartError) Error() string {
	return fmt.Sprintf("%s: %v; the end of its log:\n%s", e.Part, e.Err, e.Log)
}

// Unwrap gives the cause.
func (e *PartError) Unwrap() error { return e.Err }

func isPortClash(err error) bool {
	var failed *PartError
	return errors.As(err, &failed) && strings.Contains(failed.Log, "address already in use")
}

// StartPart starts a part that is not running, with the data and ports it had before, and waits until it is ready.
func (c *Cluster) StartPart(ctx context.Context, part Part) error {
	began := time.Now()
	p, err := c.launch(part)
	if err != nil {
		return err
	}
	if err := c.awaitReady(ctx, part, p); err != nil {
		return &PartError{Part: part, Err: err, Log: logTail(c.LogFile(part))}
	}
	fmt.Fprintf(c.out, "%s ready after %.1fs\n", part, time.Since(began).Seconds())
	return nil
}

// launch holds the lock over check and start, so that two callers cannot start one part twice, nor after Stop.
func (c *Cluster) launch(part Part) (*process, error) {
	args, err := c.args(part)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil, fmt.Errorf("starting %s: the cluster has been stopped", part)
	}
	if old := c.processes[part]; old != nil && old.isRunning() {
		return nil, fmt.Errorf("starting %s: it is running already", part)
	}
	log, err := os.OpenFile(c.LogFile(part), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", part, err)
	}
	// The child has its own copy of the descriptor.
	defer log.Close()
	cmd := exec.Command(c.binary, append([]string{string(part)}, args...)...)
	cmd.Dir = c.dir
	cmd.Env = partEnvironment(os.Environ())
	cmd.Stdout, cmd.Stderr = log, log
	p, err := startProcess(cmd)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", part, err)
	}
	c.processes[part] = p
	return p, nil
}

// partEnvironment drops what would steer a part from outside: etcd reads each of its flags from ETCD_ variables too,
// and clients would honour KUBECONFIG or a proxy.
func partEnvironment(environment []string) []string {
	var kept []string
	for _, entry := range environment {
		name, _, _ := strings.Cut(entry, "=")
		switch {
		case strings.HasPrefix(name, "ETCD_"), strings.HasPrefix(name, "KUBE"):
		case strings.HasSuffix(strings.ToLower(name), "_proxy"):
		default:
			kept = append(kept, entry)
		}
	}
	return kept
}

// Kill ends a part at once, as a crash would. A part that is not running stays so.
func (c *Cluster) Kill(part Part) error {
	p, err := c.process(part)
	if err != nil {
		return err
	}
	p.kill()
	return nil
}

// StopPart asks a part to end, and kills it if it does not.
func (c *Cluster) StopPart(part Part) error {
	p, err := c.process(part)
	if err != nil {
		return err
	}
	p.stop(stopGrace)
	return nil
}

// ProcessID is the process of a part, zero if it is not running.
func (c *Cluster) ProcessID(part Part) int {
	p, err := c.process(part)
	if err != nil || !p.isRunning() {
		return 0
	}
	return p.cmd.Process.Pid
}

// LogFile is the path of what a part writes, over all its starts.
func (c *Cluster) LogFile(part Part) string { return c.path(string(part) + ".log") }

func (c *Cluster) process(part Part) (*process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.processes[part]
	if p == nil {
		return nil, fmt.Errorf("%s was never started", part)
	}
	return p, nil
}

func (c *Cluster) stopProcesses() {
	for _, parts := range stoppingOrder {
		var wait sync.WaitGroup
		for _, part := range parts {
			if p, err := c.process(part); err == nil {
				wait.Go(func() { p.stop(stopGrace) })
			}
		}
		wait.Wait()
	}
}

// logTail returns the last lines of a log, enough to see why its writer ended.
func logTail(path string) string {
	const lines = 25
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
