// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

const (
	// askAgain is how soon a missing right is asked for again, and askAll how soon every one is: rights can
	// also be taken away.
	askAgain = 10 * time.Second
	askAll   = 5 * time.Minute
)

// Right is what a part of the program does with a resource.
type Right struct {
	Group string
	// Resource is the plural, with the subresource after a slash.
	Resource string
	// Verbs are separated by blanks.
	Verbs string
	// Namespace is empty for all namespaces and for what has none.
	Namespace string
	// Why says what does not work without.
	Why string
}

// object is how messages name the resource.
func (r Right) object() string {
	name := r.Resource
	if r.Group != "" {
		name += " of " + r.Group
	}
	if r.Namespace != "" {
		name += " in namespace " + r.Namespace
	}
	return name
}

// verdict is what the API server said about a verb.
type verdict int

const (
	unasked verdict = iota
	granted
	refused
	// unknown means that the question failed, and none before it was answered. It counts as granted: the work itself will find out.
	unknown
)

// question is a right for one verb.
type question struct {
	group, resource, namespace, verb string
}

// access knows which rights the process has. Each missing one is told once, and again when that changes.
type access struct {
	client kube.Client
	clock  clock.Clock
	health *health
	cure   cure

	mu       sync.Mutex
	rights   []Right
	verdicts map[question]verdict
	told     map[string]bool
	news     chan struct{} // closed when verdicts are new
	wake     chan struct{}

	// account is who the process is; empty until somebody has to know.
	account string
}

func newAccess(client kube.Client, clk clock.Clock, h *health, c cure) *access {
	return &access{
		client: client, clock: clk, health: h, cure: c,
		verdicts: map[question]verdict{}, told: map[string]bool{}, news: make(chan struct{}), wake: make(chan struct{}, 1),
	}
}

// require adds rights to what is asked.
func (a *access) require(rights ...Right) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range rights {
		if !slices.Contains(a.rights, r) {
			a.rights = append(a.rights, r)
		}
	}
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// await returns when a right is there, or when the context ends.
func (a *access) await(ctx context.Context, right Right) error {
	a.require(right)
	for {
		a.mu.Lock()
		missing, news := a.missing(right, refused, unasked), a.news
		a.mu.Unlock()
		if len(missing) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for rights on %s: %w", right.object(), ctx.Err())
		case <-news:
		}
	}
}

// awaitRefusal tells that a right is certainly missing. It ends without that once the right is certainly there, or with the context.
func (a *access) awaitRefusal(ctx context.Context, right Right) bool {
	a.require(right)
	for {
		a.mu.Lock()
		gone, open, news := a.missing(right, refused), a.missing(right, unasked, unknown), a.news
		a.mu.Unlock()
		switch {
		case len(gone) > 0:
			return true
		case len(open) == 0:
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-news:
		}
	}
}

// missing lists the verbs of a right whose verdict is one of these.
func (a *access) missing(r Right, verdicts ...verdict) []string {
	var verbs []string
	for verb := range strings.FieldsSeq(r.Verbs) {
		if slices.Contains(verdicts, a.verdicts[question{r.Group, r.Resource, r.Namespace, verb}]) {
			verbs = append(verbs, verb)
		}
	}
	return verbs
}

// run asks until the context ends.
func (a *access) run(ctx context.Context) error {
	everything := a.clock.Now()
	for {
		all := !a.clock.Now().Before(everything)
		if all {
			everything = a.clock.Now().Add(askAll)
		}
		a.ask(ctx, all)
		if ctx.Err() != nil {
			return nil
		}
		a.learnAccount(ctx)
		a.report(klog.FromContext(ctx))
		timer := a.clock.NewTimer(askAgain)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-a.wake:
			timer.Stop()
		case <-timer.C():
		}
	}
}

// ask puts the questions whose answer is not yet yes, or all.
func (a *access) ask(ctx context.Context, all bool) {
	var asking sync.WaitGroup
	slots := make(chan struct{}, 8)
	for _, q := range a.questions(all) {
		select {
		case <-ctx.Done():
		case slots <- struct{}{}:
			asking.Go(func() {
				defer func() { <-slots }()
				a.learn(ctx, q)
			})
		}
	}
	asking.Wait()
}

// learn asks one question and notes the answer. Without one the last that there was holds.
func (a *access) learn(ctx context.Context, q question) verdict {
	v := a.fetchVerdict(ctx, q)
	a.mu.Lock()
	defer a.mu.Unlock()
	if ctx.Err() == nil && (v != unknown || a.verdicts[q] == unasked) {
		a.verdicts[q] = v
		close(a.news)
		a.news = make(chan struct{})
	}
	if known := a.verdicts[q]; known != unasked {
		return known
	}
	return v
}

func (a *access) questions(all bool) []question {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := map[question]bool{}
	var open []question
	for _, r := range a.rights {
		for verb := range strings.FieldsSeq(r.Verbs) {
			q := question{r.Group, r.Resource, r.Namespace, verb}
			if !asked[q] && (all || a.verdicts[q] != granted) {
				asked[q] = true
				open = append(open, q)
			}
		}
	}
	return open
}

// fetchVerdict asks the API server whether this process may.
func (a *access) fetchVerdict(ctx context.Context, q question) verdict {
	resource, sub, _ := strings.Cut(q.resource, "/")
	review, err := kube.Create(ctx, a.client, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: q.namespace, Verb: q.verb, Group: q.group, Resource: resource, Subresource: sub,
		}},
	})
	switch {
	case err != nil:
		klog.FromContext(ctx).V(2).Info("Cannot ask for a right", "verb", q.verb, "resource", q.resource, "err", err)
		return unknown
	case review.Status.Allowed:
		return granted
	}
	return refused
}

// report tells what is missing now and was not before, and the other way round.
func (a *access) report(logger klog.Logger) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := map[string]bool{}
	for _, r := range a.rights {
		// A right that was added while the questions were out is told when all of it has been asked.
		if verbs := a.missing(r, refused); len(verbs) > 0 && len(a.missing(r, unasked)) == 0 {
			text := fmt.Sprintf("missing right: %s on %s, needed for %s; %s", strings.Join(verbs, ", "), r.object(), r.Why, a.cure.of(r, a.account))
			now[text] = true
			if !a.told[text] {
				logger.Error(nil, text)
			}
		}
	}
	for text := range a.told {
		if !now[text] {
			logger.Info("No longer so: " + text)
		}
	}
	a.told = now
	a.health.note(noteRights, strings.Join(slices.Sorted(maps.Keys(now)), "; "))
}
