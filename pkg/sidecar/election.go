// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// leaseTolerance is how long a renewal may be overdue, beyond the lease itself, before health says so.
const leaseTolerance = 20 * time.Second

// takeTime is what the elector gets to finish taking a lease that was seen free.
const takeTime = 100 * time.Millisecond

// errLeaseLost ends what runs under a lease. It is a state: the process stands by again.
var errLeaseLost = errors.New("the lease was lost")

// campaign is one process's part in the election for one lease.
type campaign struct {
	election Election
	lock     *leaseLock
	watchdog *leaderelection.HealthzAdaptor
	released <-chan struct{}
}

// lead stands by until the lease is held, works, and gives the lease back after the work has ended. It
// returns errLeaseLost when the lease went first.
func (c *campaign) lead(ctx context.Context, work func(context.Context) error) error {
	for ctx.Err() == nil {
		again, err := c.term(ctx, work)
		if !again {
			return err
		}
	}
	return nil
}

// term is one candidacy. A new one begins when the lease was seen free, since the elector would look only
// after its retry period.
func (c *campaign) term(ctx context.Context, work func(context.Context) error) (again bool, err error) {
	// The elector must outlive the work: its end gives the lease to somebody else.
	electing, stop := context.WithCancel(context.WithoutCancel(ctx))
	select {
	case <-c.released: // news of before; the elector looks for itself first
	default:
	}
	won, ended := make(chan struct{}), make(chan struct{})
	defer func() { stop(); <-ended }()
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: c.lock, Name: c.lock.key.Name, WatchDog: c.watchdog, ReleaseOnCancel: true,
		LeaseDuration: c.election.LeaseDuration, RenewDeadline: c.election.RenewDeadline, RetryPeriod: c.election.RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(won) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		close(ended)
		return false, fmt.Errorf("leader election: %w", err)
	}
	c.watchdog.SetLeaderElection(elector)
	defer c.watchdog.SetLeaderElection(nil)
	go func() { defer close(ended); elector.Run(electing) }()

	select {
	case <-ctx.Done():
		return false, nil
	case <-c.released:
		select {
		case <-won: // what was seen free is ours by now
		case <-time.After(takeTime):
			return true, nil
		}
	case <-ended:
		return true, nil // won and lost before anything began
	case <-won:
	}
	return false, c.workWhile(ctx, ended, work)
}

// workWhile works until the work ends, is told to end, or the lease is gone.
func (c *campaign) workWhile(ctx context.Context, lost <-chan struct{}, work func(context.Context) error) error {
	logger := klog.FromContext(ctx).WithValues("lease", c.lock.Describe())
	logger.Info("Leading", "identity", c.lock.identity)
	working, stop := context.WithCancel(ctx)
	defer stop()
	result := make(chan error, 1)
	go func() { result <- work(working) }()
	select {
	case err := <-result:
		return err
	case <-lost:
		logger.Error(nil, "Lost the lease: stopping all work at once")
		stop()
		return errors.Join(errLeaseLost, <-result)
	}
}

// watchLease tells when the lease is free. Without the right to watch it, the elector's own timer does.
func watchLease(lock *leaseLock) (*kube.Informer[*coordinationv1.Lease], <-chan struct{}) {
	released := make(chan struct{}, 1)
	informer := kube.NewInformer(lock.client, kube.InformerOptions[*coordinationv1.Lease]{
		Namespace: lock.key.Namespace, FieldSelector: "metadata.name=" + lock.key.Name,
	})
	informer.OnChange(func(change kube.Change[*coordinationv1.Lease]) {
		if holder := change.Object().Spec.HolderIdentity; !change.Deleted && holder != nil && *holder != "" {
			return
		}
		select {
		case released <- struct{}{}:
		default:
		}
	})
	return informer, released
}
