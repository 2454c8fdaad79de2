// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// errAnew ends a term because a new one can do more.
var errAnew = errors.New("setting up anew")

const (
	// lookAtCaches is how often those who wait for a cache look at it.
	lookAtCaches = 50 * time.Millisecond
	// headStart is for how long the caches without which nothing can be done are filled before the others. In a large cluster all of
	// them together take several times as long, of which the first claim would have to wait for the end.
	headStart = 10 * time.Second
)

// term builds the rooms and their caches, warms the caches, and lets the rooms work while their leases
// are held. It ends with the context, with the first error, or with the first lease that is lost.
func (l *life) term(ctx context.Context, k *link) error {
	registry := prometheus.NewRegistry()
	if k.calls != nil {
		registry.MustRegister(k.calls)
	}
	l.meters.rooms.Store(registry)
	env := l.buildEnv(k)
	runnables, err := l.Setup(ctx, env)
	if err != nil {
		return fmt.Errorf("setting up: %w", err)
	}
	l.show(env, runnables, registry)
	// The caches outlive the rooms, which read from them to the last.
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	var watches sync.WaitGroup
	defer watches.Wait()
	defer stop()
	first := needed(env, runnables)
	for _, w := range env.informers {
		watches.Go(func() {
			if !slices.Contains(first, kube.Runner(w)) {
				l.giveWay(watching, first)
			}
			l.keepWatch(watching, w)
		})
	}

	group, working := errgroup.WithContext(ctx)
	group.Go(func() error {
		l.explain(working, env, runnables)
		<-working.Done() // work that ends early is no reason to end the process
		return nil
	})
	l.awaitRights(working, group, env)
	for lease, members := range byLease(runnables, l.leaseName(k)) {
		if l.elects(members) {
			c, informer := l.campaign(lease)
			if env.tenures != nil && lease == l.leaseName(k) {
				c.lock.noted, env.tenures.lock = true, c.lock
			}
			watches.Go(func() { l.keepWatch(watching, informer) })
			group.Go(func() error { return l.underLease(working, env, members, c.lead) })
			continue
		}
		group.Go(func() error { return l.underLease(working, env, members, alone) })
	}
	return group.Wait()
}

// alone is leading without an election.
func alone(ctx context.Context, work func(context.Context) error) error { return work(ctx) }

func (l *life) leaseName(k *link) string {
	if l.Lease == nil {
		return l.Name
	}
	return l.leaseFor(l.Lease(k.identity.Name))
}

func byLease(runnables []Runnable, own string) map[string][]Runnable {
	sorted := map[string][]Runnable{}
	for _, r := range runnables {
		lease := r.Lease
		if lease == "" {
			lease = own
		}
		sorted[lease] = append(sorted[lease], r)
	}
	return sorted
}

func (l *life) campaign(name string) (*campaign, *kube.Informer[*coordinationv1.Lease]) {
	election, leads := l.Options.Election, l.meters.leading.WithLabelValues(name)
	leads.Set(0)
	lock := &leaseLock{
		client: l.leaseClient, key: kube.Key{Namespace: l.leaseNamespace, Name: name}, identity: l.holder,
		labels: election.Labels, lasts: election.LeaseDuration, recorder: l.events.recorder(name + "/" + l.holder),
		clock: l.clock, retried: l.meters.retried.WithLabelValues(name),
	}
	l.health.lease(lock)
	l.access.require(Right{"coordination.k8s.io", "leases", "get create patch", l.leaseNamespace, "leader election"})
	c := &campaign{election: election, lock: lock, leading: func(is bool) {
		leads.Set(0)
		if is {
			leads.Set(1)
		}
	}}
	return c, watchLease(c)
}

// keepWatch runs an informer as soon as the process has the right to. Without, it would only ask again
// and again for what is refused.
func (l *life) keepWatch(ctx context.Context, w watched) {
	r := w.Resource()
	right := Right{Group: r.Group, Resource: r.Plural, Verbs: "list watch", Namespace: w.Namespace(), Why: "keeping a cache of them"}
	if _, isLease := w.(*kube.Informer[*coordinationv1.Lease]); isLease {
		right.Namespace, right.Why = l.leaseNamespace, "taking over at once when a leader leaves"
	}
	if l.access.await(ctx, right) == nil {
		w.Run(ctx)
	}
}

// awaitRights ends the term when rights are otherwise than it was set up for.
func (l *life) awaitRights(ctx context.Context, group *errgroup.Group, env *Env) {
	for _, right := range env.awaited {
		group.Go(func() error {
			if l.access.await(ctx, right) != nil {
				return nil
			}
			return fmt.Errorf("%w: the right to %s %s has come", errAnew, right.Verbs, right.object())
		})
	}
	for _, right := range env.doubted {
		group.Go(func() error {
			if !l.access.awaitRefusal(ctx, right) {
				return nil
			}
			return fmt.Errorf("%w: the right to %s %s is missing", errAnew, right.Verbs, right.object())
		})
	}
}

// needed are the caches without which no work begins.
func needed(env *Env, runnables []Runnable) []kube.Runner {
	var needs []kube.Runner
	for _, r := range runnables {
		if !r.Optional {
			needs = append(needs, env.needs(r)...)
		}
	}
	return needs
}

// giveWay waits until other caches are filled, but not for long.
func (l *life) giveWay(ctx context.Context, first []kube.Runner) {
	for end := l.clock.Now().Add(headStart); !areFilled(first) && l.clock.Now().Before(end); {
		select {
		case <-ctx.Done():
			return
		case <-l.clock.After(lookAtCaches):
		}
	}
}

func areFilled(caches []kube.Runner) bool {
	return !slices.ContainsFunc(caches, func(c kube.Runner) bool { return !c.HasSynced() })
}

// underLease waits for the caches of the work that counts, then leads. Who could not work anyway must
// not keep others from it by holding the lease.
func (l *life) underLease(ctx context.Context, env *Env, members []Runnable, lead func(context.Context, func(context.Context) error) error) error {
	for _, r := range members {
		if !r.Optional && !l.awaitCaches(ctx, env.needs(r)) {
			return nil
		}
	}
	return lead(ctx, func(ctx context.Context) error {
		group, working := errgroup.WithContext(ctx)
		for _, r := range members {
			group.Go(func() error { return l.runOne(working, env, r) })
		}
		return group.Wait()
	})
}

func (l *life) runOne(ctx context.Context, env *Env, r Runnable) error {
	if !l.awaitCaches(ctx, env.needs(r)) {
		return nil
	}
	klog.FromContext(ctx).V(2).Info("Working", "what", r.Name)
	if s := l.shown.Load(); s != nil {
		defer s.works(r.Name)()
	}
	if err := unlessEnding(ctx, r.Run(ctx)); err != nil {
		return fmt.Errorf("%s: %w", r.Name, err)
	}
	return nil
}

// awaitCaches returns false when the context ended first.
func (l *life) awaitCaches(ctx context.Context, needs []kube.Runner) bool {
	for !areFilled(needs) {
		select {
		case <-ctx.Done():
			return false
		case <-l.clock.After(lookAtCaches):
		}
	}
	return ctx.Err() == nil
}

// explain says which caches are not filled and why, at /readyz all the time and in the logs: every ten
// seconds when they hinder the work, once when only a part of it waits, since that may be meant so.
func (l *life) explain(ctx context.Context, env *Env, runnables []Runnable) {
	needs := needed(env, runnables)
	next, told := l.clock.Now().Add(remind), ""
	for {
		hindrance, rest := l.unfilled(env, needs)
		l.health.set(checkCaches, hindrance)
		l.health.note(noteWaiting, rest)
		if hindrance == "" && rest == "" {
			klog.FromContext(ctx).V(2).Info("Caches are filled")
			return
		}
		if now := l.clock.Now(); !now.Before(next) {
			next = now.Add(remind)
			if hindrance != "" {
				klog.FromContext(ctx).Error(nil, "Nothing can be done yet", "why", hindrance)
			}
			if rest != told {
				told = rest
				klog.FromContext(ctx).Info("A part of the work waits", "why", rest)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-l.clock.After(lookAtCaches):
		}
	}
}

// unfilled tells what hinders the work, and what only part of it waits for. While something hinders all, the others wait for that: of
// them only what fails by itself is worth a word.
func (l *life) unfilled(env *Env, needed []kube.Runner) (hindrance, rest string) {
	var needs, others, failing []string
	for _, w := range env.informers {
		switch {
		case w.HasSynced():
		case slices.Contains(needed, kube.Runner(w)):
			needs = append(needs, w.Explain())
		default:
			others = append(others, w.Explain())
			if w.Failure() != nil {
				failing = append(failing, w.Explain())
			}
		}
	}
	if len(needs) > 0 {
		others = failing
	}
	return strings.Join(needs, "; "), strings.Join(others, "; ")
}
