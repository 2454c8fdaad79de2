// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// leaseLock writes and reads a Lease in the way of client-go's elector, so that older sidecars and this one
// keep each other out. That elector itself is not used: it brings the client, the informers and the listers
// of all of Kubernetes with it, half of a program like this one, and learns of a robbed lease only when its
// own time is over.
type leaseLock struct {
	client   kube.Client
	key      kube.Key
	identity string
	labels   map[string]string
	lasts    time.Duration
	recorder kube.Recorder
	clock    clock.Clock
	// retried counts the renewals that took more than a write; it may be nil.
	retried prometheus.Counter
	// noted tells to note on the lease who has led.
	noted bool
	// disowned takes that back.
	disowned atomic.Bool

	// seen is the newest state that is known, and since is when it was seen first. Whether it has run out is
	// told by the clock of this process alone: those of two machines differ.
	seen  *coordinationv1.Lease
	since time.Time

	mu sync.Mutex
	// renewed is when the last renewal that succeeded was sent; zero while the lease is not ours.
	renewed time.Time
	// tenure is that of this process, as it was written last.
	tenure kube.Tenure
	// isNoted says that the lease has a note of who has led.
	isNoted bool
}

func holderOf(lease *coordinationv1.Lease) string { return ptr.Deref(lease.Spec.HolderIdentity, "") }

// take takes the lease if it is free, has run out, or is ours already, as after an answer that was lost.
func (l *leaseLock) take(ctx context.Context) (bool, error) {
	lease, err := kube.Fetch[*coordinationv1.Lease](ctx, l.client, l.key)
	sent := l.clock.Now()
	switch {
	case apierrors.IsNotFound(err):
		lease, err = kube.Create(ctx, l.client, l.claimed(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.key.Namespace, Name: l.key.Name}}))
	case err != nil:
		return false, fmt.Errorf("reading lease %s: %w", l.key, err)
	case l.isTaken(lease):
		return false, nil
	default:
		lease, err = kube.Patch(ctx, l.client, lease, func(o *coordinationv1.Lease) { l.claimed(o) })
	}
	return l.written(sent, lease, err)
}

// isTaken tells that somebody else holds the lease, and has shown a sign of life since it lasts.
func (l *leaseLock) isTaken(lease *coordinationv1.Lease) bool {
	if l.seen == nil || l.seen.UID != lease.UID || l.seen.ResourceVersion != lease.ResourceVersion {
		l.seen, l.since = lease, l.clock.Now()
	}
	holder := holderOf(lease)
	lasts := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
	return holder != "" && holder != l.identity && l.clock.Since(l.since) < lasts
}

// renew keeps the lease. It returns errLeaseLost when the lease is certainly not ours any more.
func (l *leaseLock) renew(ctx context.Context) error {
	if holder := holderOf(l.seen); holder != l.identity {
		return fmt.Errorf("%w: %s has it", errLeaseLost, holder)
	}
	sent := l.clock.Now()
	lease, err := kube.Patch(ctx, l.client, l.seen, func(o *coordinationv1.Lease) { l.claimed(o) })
	if kube.IsConflict(err) || kube.IsGone(err) {
		// An own renewal whose answer was lost, somebody else, or an administrator.
		if l.retried != nil {
			l.retried.Inc()
		}
		lease, err = l.renewFound(ctx)
		if errors.Is(err, errLeaseLost) {
			return err
		}
	}
	held, err := l.written(sent, lease, err)
	if err == nil && !held {
		err = fmt.Errorf("writing lease %s: it was changed at the same time", l.key)
	}
	return err
}

// renewFound renews a lease that is not as this process has written it. One that somebody else has had meanwhile is lost, also when it is
// free again: what this process remembers is older than the work of the other.
func (l *leaseLock) renewFound(ctx context.Context) (*coordinationv1.Lease, error) {
	found, err := kube.Fetch[*coordinationv1.Lease](ctx, l.client, l.key)
	switch {
	case apierrors.IsNotFound(err) && l.age() < l.lasts:
		return kube.Create(ctx, l.client, l.claimed(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.key.Namespace, Name: l.key.Name}}))
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%w: nobody can tell who has had it meanwhile", errLeaseLost)
	case err != nil:
		return nil, err
	case holderOf(found) != l.identity, !kube.TenureOf(found).Is(l.Tenure()):
		return nil, fmt.Errorf("%w: %q has it or had it meanwhile", errLeaseLost, holderOf(found))
	}
	return kube.Patch(ctx, l.client, found, func(o *coordinationv1.Lease) { l.claimed(o) })
}

// release gives the lease back, if it is ours, in the way that client-go's elector does.
func (l *leaseLock) release(ctx context.Context) error {
	now := ptr.To(metav1.NewMicroTime(l.clock.Now()))
	for lease := l.seen; ; {
		_, err := kube.Patch(ctx, l.client, lease, func(o *coordinationv1.Lease) {
			o.Spec.HolderIdentity, o.Spec.LeaseDurationSeconds = ptr.To(""), ptr.To[int32](1)
			o.Spec.AcquireTime, o.Spec.RenewTime = now, now
		})
		if !kube.IsConflict(err) {
			return err
		}
		if lease, err = kube.Fetch[*coordinationv1.Lease](ctx, l.client, l.key); err != nil || holderOf(lease) != l.identity {
			return err
		}
	}
}

// claimed edits a lease into one that we hold from now on, or go on to hold.
func (l *leaseLock) claimed(lease *coordinationv1.Lease) *coordinationv1.Lease {
	now := ptr.To(metav1.NewMicroTime(l.clock.Now()))
	before, spec := lease.DeepCopy(), &lease.Spec
	if holderOf(lease) != l.identity || spec.AcquireTime == nil {
		spec.AcquireTime = now
	}
	if lease.ResourceVersion == "" {
		spec.LeaseTransitions = ptr.To[int32](0)
	} else if holderOf(lease) != l.identity {
		spec.LeaseTransitions = ptr.To(ptr.Deref(spec.LeaseTransitions, 0) + 1)
	}
	switch {
	case l.disowned.Load():
		kube.RemoveAnnotation(lease, wellknown.AnnLed)
	case l.noted:
		kube.NoteTenure(lease, before)
	}
	spec.HolderIdentity, spec.RenewTime = ptr.To(l.identity), now
	// Rounded up: what is cut off would let another one in while this one may still work.
	spec.LeaseDurationSeconds = ptr.To(int32((l.lasts + time.Second - 1) / time.Second))
	if len(l.labels) > 0 {
		merged := maps.Clone(lease.Labels)
		if merged == nil {
			merged = map[string]string{}
		}
		maps.Copy(merged, l.labels)
		lease.Labels = merged
	}
	return lease
}

// written takes in the answer to a write. That somebody was faster is no error.
func (l *leaseLock) written(sent time.Time, lease *coordinationv1.Lease, err error) (held bool, _ error) {
	switch {
	case kube.IsConflict(err), apierrors.IsAlreadyExists(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("writing lease %s: %w", l.key, err)
	}
	l.seen, l.since = lease, sent
	l.setRenewed(sent)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tenure = kube.TenureOf(lease)
	_, l.isNoted = lease.Annotations[wellknown.AnnLed]
	return true, nil
}

// disown has the next renewal take off who has led, and tells whether it is off.
func (l *leaseLock) disown() bool {
	l.disowned.Store(true)
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.isNoted
}

// Tenure is that of this process while the lease is its own; it does not change then.
func (l *leaseLock) Tenure() kube.Tenure {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tenure
}

func (l *leaseLock) setRenewed(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed = at
}

// age is how long ago a lease that is ours was renewed; zero for others.
func (l *leaseLock) age() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.renewed.IsZero() {
		return 0
	}
	return l.clock.Since(l.renewed)
}

// overdue tells that the lease should have been renewed or given up long ago: something hangs, and only a
// new process helps.
func (l *leaseLock) overdue() error {
	if l.age() > l.lasts+leaseTolerance {
		return fmt.Errorf("failed election to renew leadership on lease %s", l.key.Name)
	}
	return nil
}

// record tells a change of the leader as an event of the lease.
func (l *leaseLock) record(what string) {
	lease := l.seen
	if lease == nil {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.key.Namespace, Name: l.key.Name}}
	}
	l.recorder.Normal(lease, "LeaderElection", l.identity+" "+what)
}
