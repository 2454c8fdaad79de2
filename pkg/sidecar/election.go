// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
)

const (
	// leaseTolerance is how long a renewal may be overdue, beyond the lease itself, before health says so.
	leaseTolerance = 20 * time.Second
	// standbyJitter spreads the candidates, up to so many times the retry period.
	standbyJitter = 1.2
	// lastTry is what taking the lease may still take when the process is told to end.
	lastTry = time.Second
	// minTry is what a renewal gets at least, however near the deadline is.
	minTry = 100 * time.Millisecond
)

// lossTold is what the log says once for each lease that went.
const lossTold = "Lost the lease: stopping all work at once"

// errLeaseLost ends what runs under a lease. It is a state: the process stands by again.
var errLeaseLost = errors.New("the lease was lost")

// campaign is one process's part in the election for one lease.
type campaign struct {
	election Election
	lock     *leaseLock
	// leading is told the changes; it may be nil.
	leading func(bool)
	// free and robbed bring news from the watch of the lease.
	free, robbed <-chan struct{}
}

// lead stands by until the lease is held, works, and gives the lease back after the work has ended. It
// returns errLeaseLost when the lease went first.
func (c *campaign) lead(ctx context.Context, work func(context.Context) error) error {
	logger := klog.FromContext(ctx).WithValues("lease", c.lock.key.String())
	if !c.standBy(klog.NewContext(ctx, logger)) {
		return nil
	}
	logger.Info("Leading", "identity", c.lock.identity)
	c.lock.record("became leader")
	c.tell(true)
	// The lease must outlive the work: its end gives it to somebody else.
	holding, let := context.WithCancel(context.WithoutCancel(ctx))
	lost := make(chan error, 1)
	go func() { lost <- c.hold(klog.NewContext(holding, logger)) }()
	graceful, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	working, stop := context.WithCancelCause(reconcile.WithGrace(ctx, graceful))
	result := make(chan error, 1)
	go func() { result <- work(working) }()

	var err, why error
	select {
	case why = <-lost:
		logger.Error(why, lossTold)
		stop(fmt.Errorf("%w: %w", errLeaseLost, reconcile.ErrNoGrace))
		cut() // the work may have been told to end before, with time for what is in hand
		err = errors.Join(errLeaseLost, <-result)
	case err = <-result:
		stop(nil)
		let()
		if why = <-lost; why == nil {
			why = c.lostTo(ctx, err)
		}
		if why != nil && isYielding(err) {
			logger.Error(why, lossTold)
			err = errors.Join(errLeaseLost, err)
		}
	}
	let()
	c.lock.setRenewed(time.Time{})
	c.tell(false)
	c.lock.record("stopped leading")
	if why == nil {
		c.release(holding, logger)
	}
	return err
}

// lostTo tells that the lease is in other hands, to whom work ended with the error that another process does it: who was asleep may meet the work
// of the next leader before the lease has told of it. It is nil where the lease is ours, and where nobody can tell, as when the process ends.
func (c *campaign) lostTo(ctx context.Context, met error) error {
	if !isYielding(met) {
		return nil
	}
	looking, cancel := context.WithTimeout(ctx, c.election.RenewDeadline)
	defer cancel()
	if err := c.lock.renew(looking); errors.Is(err, errLeaseLost) {
		return err
	}
	return nil
}

func (c *campaign) tell(leads bool) {
	if c.leading != nil {
		c.leading(leads)
	}
}

// standBy returns true with the lease, and false when the context has ended before.
func (c *campaign) standBy(ctx context.Context) bool {
	logger, told := klog.FromContext(ctx), ""
	for ctx.Err() == nil {
		held, err := c.try(ctx)
		switch {
		case held:
			return true
		case err != nil && err.Error() != told:
			told = err.Error()
			logger.Error(err, "Cannot take part in the election now; it is tried on and on")
		case err == nil:
			told = ""
		}
		select {
		case <-ctx.Done():
		case <-c.free:
		case <-c.lock.clock.After(wait.Jitter(c.election.RetryPeriod, standbyJitter)):
		}
	}
	return false
}

// try looks once. A write that was begun gets a moment at the end of the context: nobody would give back
// what it has taken.
func (c *campaign) try(ctx context.Context) (bool, error) {
	trying, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.election.RenewDeadline)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastTry, cancel) })()
	select {
	case <-c.robbed: // news of the one before; what comes from now on may be of one after
	default:
	}
	return c.lock.take(trying)
}

// hold renews the lease until the context ends. It returns why the lease is lost.
func (c *campaign) hold(ctx context.Context) error {
	logger := klog.FromContext(ctx)
	for {
		left := c.election.RenewDeadline - c.lock.age()
		select {
		case <-ctx.Done():
			return nil
		case <-c.robbed:
		case <-c.lock.clock.After(c.election.pause(left)):
		}
		left = c.election.RenewDeadline - c.lock.age()
		trying, cancel := context.WithTimeout(ctx, max(left, minTry))
		err := c.lock.renew(trying)
		cancel()
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errLeaseLost):
			return err
		case c.lock.age() >= c.election.RenewDeadline:
			return fmt.Errorf("not renewed for %v: %w", c.election.RenewDeadline, err)
		default:
			logger.V(2).Info("Renewing the lease failed", "err", err)
		}
	}
}

// release lets another one lead at once. Without, it would have to wait until the lease runs out.
func (c *campaign) release(ctx context.Context, logger klog.Logger) {
	giving, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.election.RenewDeadline)
	defer cancel()
	if err := c.lock.release(giving); err != nil && !kube.IsGone(err) {
		logger.Error(err, "The lease was not given back: another one has to wait until it runs out")
	}
}

// pause is how long to wait before the lease is renewed again, with so much left of the time for that: a slow API server gets half of it at
// least, since what it answers too late costs all work in hand.
func (e *Election) pause(left time.Duration) time.Duration {
	return max(0, min(e.RetryPeriod, max(left/2, minTry), left))
}

// watchLease brings news of the lease. Without the right to watch it, timers have to do.
func watchLease(c *campaign) *kube.Informer[*coordinationv1.Lease] {
	free, robbed := make(chan struct{}, 1), make(chan struct{}, 1)
	c.free, c.robbed = free, robbed
	lock := c.lock
	informer := kube.NewInformer(lock.client, kube.InformerOptions[*coordinationv1.Lease]{
		Namespace: lock.key.Namespace, FieldSelector: "metadata.name=" + lock.key.Name,
	})
	informer.OnChange(func(change kube.Change[*coordinationv1.Lease]) {
		switch holder := holderOf(change.Object()); {
		case change.Deleted || holder == "":
			ring(free)
		case holder != lock.identity:
			ring(robbed)
		}
	})
	return informer
}

// ring leaves a message for who does not listen now.
func ring(bell chan<- struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}
