// SPDX-License-Identifier: Apache-2.0

package throttle_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/throttle"
)

// model is a driver in simulated time. What it does with a call is its making; the rest is counted.
type model struct {
	throttle.Caller
	deadline time.Duration
	// make does the work of one call, and ends with the context if it heeds it.
	make func(ctx context.Context, name string) error

	mu                          sync.Mutex
	out                         map[string]int
	calls, aborted, late, twice int
	peak                        int
}

func (m *model) CreateVolume(ctx context.Context, request *csi.CreateVolumeRequest) (*csi.Volume, error) {
	name := request.GetName()
	m.note(func() {
		m.calls++
		m.out[name]++
		if m.out[name] > 1 {
			m.twice++
		}
		n := 0
		for _, v := range m.out {
			n += v
		}
		m.peak = max(m.peak, n)
	})
	ctx, cancel := context.WithTimeout(ctx, m.deadline)
	defer cancel()
	err := m.make(ctx, name)
	m.note(func() {
		m.out[name]--
		switch status.Code(err) {
		case codes.Aborted:
			m.aborted++
		case codes.DeadlineExceeded:
			m.late++
		}
	})
	if failure := fault.New(fault.CreateVolume, err); failure != nil {
		return nil, failure
	}
	return &csi.Volume{VolumeId: name}, nil
}

func (m *model) note(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

var (
	errAborted = status.Error(codes.Aborted, "an operation with the given volume is pending")
	errLate    = status.Error(codes.DeadlineExceeded, "context deadline exceeded")
)

// stubborn goes on working when nobody waits any more, and turns away repeats meanwhile.
type stubborn struct {
	mu            sync.Mutex
	working, done map[string]chan struct{}
	// line takes work in its order, as many at a time as there are workers.
	line *line
	took func(name string) time.Duration
}

func newStubborn(slots int, took time.Duration) *stubborn {
	return &stubborn{
		working: map[string]chan struct{}{}, done: map[string]chan struct{}{}, line: newLine(slots),
		took: func(string) time.Duration { return took },
	}
}

func (s *stubborn) make(ctx context.Context, name string) error {
	s.mu.Lock()
	if s.done[name] != nil {
		s.mu.Unlock()
		return nil
	}
	if s.working[name] != nil {
		s.mu.Unlock()
		return errAborted
	}
	ready := make(chan struct{})
	s.working[name] = ready
	s.mu.Unlock()
	go func() {
		s.line.enter()
		time.Sleep(s.took(name))
		s.line.leave()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.working, name)
		s.done[name] = ready
		close(ready)
	}()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return errLate
	}
}

// line lets a few in at a time, in order, or by a rule of its own.
type line struct {
	mu      sync.Mutex
	free    int
	waiting []chan struct{}
	// pick chooses who is next among n.
	pick func(n int) int
}

func newLine(slots int) *line { return &line{free: slots, pick: func(int) int { return 0 }} }

func (l *line) enter() {
	l.mu.Lock()
	if l.free > 0 {
		l.free--
		l.mu.Unlock()
		return
	}
	turn := make(chan struct{})
	l.waiting = append(l.waiting, turn)
	l.mu.Unlock()
	<-turn
}

func (l *line) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.free++
		return
	}
	i := l.pick(len(l.waiting))
	close(l.waiting[i])
	l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
}

// claim is one object that wants a volume.
type claim struct{ class, name string }

func claims(class string, n int) []claim {
	all := make([]claim, n)
	for i := range all {
		all[i] = claim{class, fmt.Sprintf("%s-%03d", class, i)}
	}
	return all
}

// simulate lets 100 workers of each class serve the claims, as the room of claims does, until all that count
// have their volume, and tells how long that took in simulated time.
func simulate(t *testing.T, m *model, options throttle.Options, all []claim, counts func(claim) bool) (took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m.out = map[string]int{}
		options.Clock, options.Deadline = clock.RealClock{}, m.deadline
		if options.Most == 0 {
			options.Most = 100
		}
		calls := throttle.New(m, options)
		var pending sync.WaitGroup
		classes := map[string]string{}
		for _, c := range all {
			classes[c.name] = c.class
			if counts(c) {
				pending.Add(1)
			}
		}
		queue := reconcile.NewQueue(func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
			ctx = throttle.WithFlow(ctx, classes[key.Name])
			if _, err := calls.CreateVolume(ctx, &csi.CreateVolumeRequest{Name: key.Name}); err != nil {
				return reconcile.Result{}, err
			}
			if counts(claim{classes[key.Name], key.Name}) {
				pending.Done()
			}
			return reconcile.Result{}, nil
		}, reconcile.Options{
			Workers: 100, RetryStart: time.Second, RetryMax: 5 * time.Minute, Clock: clock.RealClock{},
			Lane: func(key reconcile.Key) string { return classes[key.Name] }, RetriesApart: true,
		})
		for _, c := range all {
			queue.Add(reconcile.Key{Name: c.name})
		}
		ctx, stop := context.WithCancel(klog.NewContext(t.Context(), logr.Discard()))
		ended := make(chan struct{})
		go func() { defer close(ended); _ = queue.Run(ctx) }()
		began := time.Now()
		pending.Wait()
		took = time.Since(began)
		stop()
		<-ended
		time.Sleep(time.Hour) // what goes on at the driver ends
		if m.twice > 0 {
			t.Errorf("%d calls for a name whose call was out", m.twice)
		}
	})
	t.Logf("took %v, %d calls, %d aborted, %d beyond the deadline, at most %d at once", took, m.calls, m.aborted, m.late, m.peak)
	return took
}

func everyOne(claim) bool { return true }
