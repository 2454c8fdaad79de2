// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

const (
	// lookEvery is how often the signs of another binder are looked for.
	lookEvery = 10 * time.Second
	// fresh is how long after its last renewal a lease still counts, beside its own duration.
	fresh = 20 * time.Second
	// rivalMemory is how long a rival's write counts.
	rivalMemory = 5 * time.Minute
	// rivalName is the field manager of the program that binds for all drivers. It sets none itself, so the
	// API server takes the program's name.
	rivalName = "snapshot-controller"
)

// StanceDeps is what a Stance needs.
type StanceDeps struct {
	Client   kube.Client
	Clock    clock.PassiveClock
	Recorder kube.Recorder
	// Holder names this process in leases, Namespaces is where another binder's lease may be.
	Holder     string
	Namespaces []string
	// Manager is the field manager of our own writes.
	Manager string
	// MayBind asks whether this process may write snapshots. Nil means that it may.
	MayBind func(context.Context) bool
	// Registry may be nil.
	Registry prometheus.Registerer
}

// Stance decides whether this process binds snapshots, and whose. An explicit choice is obeyed; Auto stands
// back as long as there are signs that somebody else binds, since two who bind the same snapshots would
// harm nothing but waste writes.
type Stance struct {
	StanceDeps
	bind  Bind
	aside prometheus.Gauge
	began time.Time

	mu        sync.Mutex
	why       string
	rivalSeen time.Time
	listeners map[int]func()
	nextID    int
}

// NewStance makes a stance, which takes part until Look has found a reason not to.
func NewStance(bind Bind, deps StanceDeps) *Stance {
	s := &Stance{StanceDeps: deps, bind: bind, began: deps.Clock.Now(), listeners: map[int]func(){},
		aside: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "csi_tandem_snapshot_binding_aside",
			Help: "1 while this process leaves the binding of snapshots to another program that seems to do it.",
		})}
	if deps.Registry != nil {
		deps.Registry.MustRegister(s.aside)
	}
	return s
}

// Scope says whose snapshots are bound now; false means nobody's.
func (s *Stance) Scope() (snapshot.Scope, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.bind {
	case All:
		return snapshot.All, true
	case Own:
		return snapshot.Own, true
	case Auto:
		return snapshot.Own, s.why == ""
	default:
		return snapshot.Own, false
	}
}

// Why says why this process stands aside, empty when it does not.
func (s *Stance) Why() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.why
}

// Run looks for signs until the context ends.
func (s *Stance) Run(ctx context.Context) error {
	if s.bind != Auto {
		<-ctx.Done()
		return nil
	}
	ticks, ok := s.Clock.(clock.WithTicker)
	if !ok {
		ticks = clock.RealClock{}
	}
	timer := ticks.NewTicker(lookEvery)
	defer timer.Stop()
	for {
		s.Look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C():
		}
	}
}

// Look looks for signs once.
func (s *Stance) Look(ctx context.Context) {
	if s.bind != Auto {
		return
	}
	why, lease := s.findRival(ctx)
	s.mu.Lock()
	changed := why != s.why
	began := s.why != "" && why == ""
	s.why = why
	listeners := make([]func(), 0, len(s.listeners))
	for _, tell := range s.listeners {
		listeners = append(listeners, tell)
	}
	s.mu.Unlock()
	if !changed {
		return
	}
	s.tell(ctx, why, lease)
	if began {
		for _, tell := range listeners {
			tell()
		}
	}
}

func (s *Stance) tell(ctx context.Context, why string, lease *coordinationv1.Lease) {
	if why == "" {
		s.aside.Set(0)
		klog.FromContext(ctx).Info("Binding snapshots of the own driver")
		return
	}
	s.aside.Set(1)
	if why == noRight {
		klog.FromContext(ctx).Info("This process may not bind snapshots, and leaves that to others: where nobody else binds, grant the rights as deploy/pair/binding.yaml does, to the account of the pod", "why", why)
	} else {
		klog.FromContext(ctx).Info("Leaving the binding of snapshots to others; --bind-snapshots=own overrules this", "why", why)
	}
	if lease != nil {
		s.Recorder.Normal(lease, wellknown.ReasonBindingLeftToOthers, "Snapshots are not bound by "+s.Holder+": "+why)
	}
}

// noRight is why nobody at all may be binding.
const noRight = "no right to write VolumeSnapshots"

// findRival finds a sign that somebody else binds, or that we cannot.
func (s *Stance) findRival(ctx context.Context) (string, *coordinationv1.Lease) {
	if s.MayBind != nil && !s.MayBind(ctx) {
		return noRight, nil
	}
	for _, namespace := range s.Namespaces {
		lease, err := kube.Fetch[*coordinationv1.Lease](ctx, s.Client, kube.Key{Namespace: namespace, Name: wellknown.BinderLease})
		if err != nil {
			continue // none, or no right to see it: no sign
		}
		if holder := s.holderOf(lease); holder != "" {
			return fmt.Sprintf("lease %s/%s is held by %s", namespace, lease.Name, holder), lease
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.rivalSeen.IsZero() && s.Clock.Since(s.rivalSeen) < rivalMemory {
		return "another program writes the status of snapshots of the own driver", nil
	}
	return "", nil
}

// holderOf names the other process that holds a lease now.
func (s *Stance) holderOf(lease *coordinationv1.Lease) string {
	spec := lease.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || *spec.HolderIdentity == s.Holder || spec.RenewTime == nil {
		return ""
	}
	lasts := fresh
	if spec.LeaseDurationSeconds != nil {
		lasts += time.Duration(*spec.LeaseDurationSeconds) * time.Second
	}
	if s.Clock.Since(spec.RenewTime.Time) > lasts {
		return ""
	}
	return *spec.HolderIdentity
}

// look notes who else writes the status of a snapshot of ours. Only live objects say so; the caches drop
// it. What was written before this process began is the past of a cluster that has changed hands.
func (s *Stance) look(obj metav1.Object) {
	if s.bind != Auto {
		return
	}
	for _, entry := range obj.GetManagedFields() {
		if entry.Subresource == "status" && entry.Manager != s.Manager && strings.HasPrefix(entry.Manager, rivalName) &&
			entry.Time != nil && entry.Time.After(s.began) {
			s.mu.Lock()
			if entry.Time.After(s.rivalSeen) {
				s.rivalSeen = entry.Time.Time
			}
			s.mu.Unlock()
		}
	}
}

// onChange calls back whenever this process begins to take part again.
func (s *Stance) onChange(tell func()) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.nextID
	s.nextID++
	s.listeners[id] = tell
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.listeners, id)
	}
}
