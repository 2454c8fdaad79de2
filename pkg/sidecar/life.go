// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/trace"
)

// eventDrain is how long the last events may take to be written at the end.
const eventDrain = 2 * time.Second

// life is a process that has its clients.
type life struct {
	*process
	client, leaseClient    kube.Client
	config                 *rest.Config // nil where the clients are not of this world
	clock                  clock.WithTicker
	holder, leaseNamespace string

	started time.Time
	shown   atomic.Pointer[shown]

	health   *health
	access   *access
	meters   *meters
	listener net.Listener
	events   events
	tracer   *trace.Tracer // nil when nothing is traced
}

func (p *process) run(ctx context.Context) error {
	l, err := p.born()
	if err != nil {
		return err
	}
	return l.run(ctx)
}

// run lives until the work ends or the context does. What serves the work, such as HTTP and events, ends
// after it.
func (l *life) run(ctx context.Context) error {
	group, outer := errgroup.WithContext(context.WithoutCancel(ctx))
	outer, end := context.WithCancel(outer)
	defer end()
	if err := l.listen(outer); err != nil {
		return err
	}
	outer, endTraces := l.beginTraces(outer)
	defer endTraces()
	working, stop := context.WithCancel(outer)
	defer stop()
	defer context.AfterFunc(ctx, stop)()

	l.events.begin(outer, l.client, l.holder, l.clock)
	group.Go(func() error { return l.serve(outer) })
	group.Go(func() error { return l.access.run(outer) })
	group.Go(func() error { tidy(outer, l.clock); return nil })
	group.Go(func() error { l.health.pulse.remind(outer); return nil })
	group.Go(func() error { defer end(); return l.work(working) })
	err := group.Wait()
	end()
	l.events.wait()
	if err == nil {
		klog.FromContext(ctx).Info("Stopped")
	}
	return err
}

func (p *process) born() (*life, error) {
	config, err := buildConfig(p.Options, p.Name+"/"+p.Version)
	if err != nil {
		return nil, err
	}
	client, err := kube.NewClient(config)
	if err != nil {
		return nil, fatal("API server: %w", err)
	}
	leaseClient, err := kube.NewClient(leaseConfig(config, p.Options.Election.RenewDeadline))
	if err != nil {
		return nil, fatal("API server: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fatal("the name of this host, which names the holder of leases: %w", err)
	}
	l := p.begun(client, leaseClient, host)
	l.config = config
	return l, nil
}

func (p *process) begun(client, leaseClient kube.Client, host string) *life {
	health := newHealth()
	client = &felt{client, health.pulse}
	l := &life{
		process: p, leaseClient: &felt{leaseClient, health.pulse}, clock: clock.RealClock{}, holder: holderIdentity(host),
		leaseNamespace: leaseNamespace(p.Options.Election.Namespace, serviceAccountNamespace),
		health:         health, meters: newMeters(p.IsMigrated),
	}
	l.client, l.started = newCounted(client, l.meters.process), l.clock.Now()
	l.access = newAccess(client, l.clock, l.health, cure{p.Manifest, p.Components})
	l.access.require(p.Rights...)
	return l
}

// work waits for the driver, and then lives one term after the other. Between two of them a lease was
// lost, and what the caches and queues held may be what another process has changed since.
func (l *life) work(ctx context.Context) error {
	l.health.set(checkCaches, "not begun")
	k, err := l.connect(ctx)
	if err != nil {
		return unlessEnding(ctx, err)
	}
	defer k.close()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return l.watch(ctx, k) })
	group.Go(func() error { l.checkNode(ctx); return nil })
	group.Go(func() error {
		for {
			err := l.term(ctx, k)
			if l.yield(ctx, err) {
				continue
			}
			if ctx.Err() != nil || !errors.Is(err, errLeaseLost) && !errors.Is(err, errAnew) {
				return unlessEnding(ctx, err)
			}
			klog.FromContext(ctx).Info("Beginning again", "why", err.Error())
		}
	})
	return group.Wait()
}

// yielding is the error of work that has met another process doing the same.
type yielding interface {
	error
	// YieldsFor is how long the work is left to the other.
	YieldsFor() time.Duration
}

// isYielding tells that work has met another process doing the same.
func isYielding(err error) bool {
	var met yielding
	return errors.As(err, &met)
}

// yield waits when another process does the same work, and tells whether to begin again. That is a state,
// as a lost lease is: two that end each other would both be in a crash loop. Whom the lease keeps out need not wait for
// anything else: it stands by, ready to take over.
func (l *life) yield(ctx context.Context, err error) bool {
	var met yielding
	if ctx.Err() != nil || errors.Is(err, errLeaseLost) || !errors.As(err, &met) {
		return false
	}
	klog.FromContext(ctx).Error(err, "All work was stopped, because another process does it", "beginning again after", met.YieldsFor())
	l.health.note(noteYielding, met.Error())
	defer l.health.note(noteYielding, "")
	timer := l.clock.NewTimer(met.YieldsFor())
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}

// unlessEnding drops the errors of what was told to end; that it did is no failure.
func unlessEnding(ctx context.Context, err error) error {
	isState := errors.Is(err, context.Canceled) || errors.Is(err, errLeaseLost) || errors.Is(err, errAnew) || isYielding(err)
	if ctx.Err() != nil && isState {
		return nil
	}
	return err
}

// buildEnv is what the rooms of one term get.
func (l *life) buildEnv(k *link) *Env {
	name := k.identity.Name
	component := l.Component
	if strings.Contains(component, "%s") {
		component = strings.TrimSpace(fmt.Sprintf(component, name))
	}
	return &Env{
		Client: l.client, Driver: k.conn, Calls: k.calls, DriverName: name, Capabilities: k.identity.Capabilities,
		Identity: newIdentity(l.clock.Now(), name, l.node), Node: l.node, Place: k.place, Holder: l.holder, LeaseNamespace: l.leaseNamespace,
		Recorder: l.events.recorder(component), Clock: l.clock, Registry: l.meters.rooms.Load(),
		Options: l.Options, Gates: l.gates, recorder: l.events.recorder, access: l.access, config: l.config,
	}
}

// events are the recorders of the process, one for each component that users see as a source.
type events struct {
	ctx     context.Context //nolint:containedctx // recorders are made on demand and live as long as the process
	client  kube.Client
	holder  string
	clock   clock.Clock
	running sync.WaitGroup

	mu    sync.Mutex
	known map[string]kube.Recorder
}

func (e *events) begin(ctx context.Context, client kube.Client, holder string, clk clock.Clock) {
	e.ctx, e.client, e.holder, e.clock, e.known = ctx, client, holder, clk, map[string]kube.Recorder{}
}

func (e *events) recorder(component string) kube.Recorder {
	e.mu.Lock()
	defer e.mu.Unlock()
	if known := e.known[component]; known != nil {
		return known
	}
	writer := kube.NewEventWriter(e.client, component, e.holder, e.clock)
	e.known[component] = writer
	e.running.Go(func() { writer.Run(e.ctx, eventDrain) })
	return writer
}

func (e *events) wait() { e.running.Wait() }
