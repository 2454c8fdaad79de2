// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// endGrace is how long a program may take to end when it is asked to.
const endGrace = 15 * time.Second

// Process is a program that can be ended and started again, always with the same arguments and into the same log.
type Process struct {
	// Name is what people call it, such as "provisioner".
	Name string
	// Path and Args are what is run.
	Path string
	Args []string
	// Env are variables besides the usual ones.
	Env []string
	// Log is the file that takes all that it writes, over all its starts.
	Log string

	// turn is held over a start and over an end: two callers who both restart must not leave two of them.
	turn sync.Mutex

	mu   sync.Mutex
	run  *run
	died []string
}

// run is one life of a process.
type run struct {
	cmd  *exec.Cmd
	done chan struct{}
	// ending is set when somebody wanted the end.
	ending bool
}

// Start runs the program, unless it runs already.
func (p *Process) Start() error {
	p.turn.Lock()
	defer p.turn.Unlock()
	if p.IsRunning() {
		return nil
	}
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", p.Name, err)
	}
	// The child has its own copy of the descriptor.
	defer log.Close()
	cmd := exec.Command(p.Path, p.Args...)
	cmd.Dir = filepath.Dir(p.Log)
	cmd.Env = append(plainEnvironment(os.Environ()), p.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	leash(cmd)
	r := &run{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// On Linux the signal of a parent's death is sent when the thread ends that forked, not when the process does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.ended(r, cmd.Wait())
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.run = r
	return nil
}

func (p *Process) ended(r *run, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !r.ending {
		p.died = append(p.died, fmt.Sprintf("%s ended by itself: %v", p.Name, r.cmd.ProcessState))
	}
	_ = err // The state says the same, and also says it when there is no error.
	close(r.done)
}

// Kill ends the program as kill -9 does, and waits until it is gone.
func (p *Process) Kill() { p.end(syscall.SIGKILL) }

// Terminate asks the program to end, kills it if it does not, and says how it ended.
func (p *Process) Terminate() *os.ProcessState { return p.end(syscall.SIGTERM) }

// Restart kills the program and starts it again.
func (p *Process) Restart() error {
	p.Kill()
	return p.Start()
}

// BeginTermination asks the program to end and is back at once. What is returned waits for the end as Terminate does, and has
// to be called before anything else is done to the process.
func (p *Process) BeginTermination() (wait func() *os.ProcessState) {
	p.turn.Lock()
	r := p.ask(syscall.SIGTERM)
	return func() *os.ProcessState {
		defer p.turn.Unlock()
		return r.await()
	}
}

func (p *Process) end(signal syscall.Signal) *os.ProcessState {
	p.turn.Lock()
	defer p.turn.Unlock()
	return p.ask(signal).await()
}

// ask sends a signal to the life that goes on, if one does.
func (p *Process) ask(signal syscall.Signal) *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.run; r != nil {
		select {
		case <-r.done:
		default:
			r.ending = true
			// The group, since a program may have children; an error means that it is gone already.
			_ = syscall.Kill(-r.cmd.Process.Pid, signal)
		}
	}
	return p.run
}

func (r *run) await() *os.ProcessState {
	if r == nil {
		return nil
	}
	timer := time.NewTimer(endGrace)
	defer timer.Stop()
	select {
	case <-r.done:
	case <-timer.C:
		_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL)
		<-r.done
	}
	return r.cmd.ProcessState
}

// whileRunning is a context that ends with the life that goes on, for whoever waits for an answer of it.
func (p *Process) whileRunning(ctx context.Context) (context.Context, context.CancelFunc) {
	p.mu.Lock()
	r := p.run
	p.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	stop := make(chan struct{})
	go func() {
		select {
		case <-r.done:
			cancel(fmt.Errorf("%s has ended: %v", p.Name, r.cmd.ProcessState))
		case <-stop:
		}
	}()
	return ctx, func() { close(stop); cancel(nil) }
}

// IsRunning is false before the first start and after an end of whatever kind.
func (p *Process) IsRunning() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil {
		return false
	}
	select {
	case <-p.run.done:
		return false
	default:
		return true
	}
}

// ID is the id of the running process, or zero.
func (p *Process) ID() int {
	if !p.IsRunning() {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run.cmd.Process.Pid
}

// Ends tells each end that nobody asked for.
func (p *Process) Ends() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.died...)
}

// Forgive forgets the ends so far: somebody wanted them after all.
func (p *Process) Forgive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.died = nil
}

// Deaths tells each end that nobody asked for, and each panic in the log.
func (p *Process) Deaths() []string {
	deaths := p.Ends()
	log, err := os.ReadFile(p.Log)
	if err != nil {
		return append(deaths, err.Error())
	}
	for _, sign := range []string{"\npanic: ", "panic.go", "WARNING: DATA RACE", "fatal error: "} {
		if strings.Contains(string(log), sign) {
			return append(deaths, fmt.Sprintf("%s: there is %q in %s", p.Name, strings.TrimSpace(sign), p.Log))
		}
	}
	return deaths
}

// LogTail is the end of the log.
func (p *Process) LogTail(count int) string {
	log, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(log), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-count):], "\n")
}

// plainEnvironment drops what would steer a sidecar besides its flags: KUBECONFIG wins over --kubeconfig, a proxy would get
// between, and traces would go to somebody's collector.
func plainEnvironment(environment []string) []string {
	var kept []string
	for _, entry := range environment {
		name, _, _ := strings.Cut(entry, "=")
		switch {
		case strings.HasPrefix(name, "KUBE"), name == "POD_NAMESPACE", name == "NAMESPACE", name == "POD_NAME", name == "NODE_NAME":
		case strings.HasSuffix(strings.ToLower(name), "_proxy"), strings.HasPrefix(name, "OTEL_"):
		default:
			kept = append(kept, entry)
		}
	}
	return kept
}
