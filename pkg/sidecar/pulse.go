// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// longSilence is how long the API server may be silent before the process says so. Large pages of a busy server take seconds.
const longSilence = 10 * time.Second

// stale is after how long without a request nobody can tell any more whether there would be an answer. Who leads, or stands by, asks
// more often than that.
const stale = 3 * longSilence

// pulse knows since when the API server has been asked without any answer. One that hangs breaks no watch and fails no request for a
// long time, and all that waits for it looks well meanwhile.
type pulse struct {
	clock clock.Clock

	mu sync.Mutex
	// asked counts the requests that are under way, since is when the first one was sent after the last answer, and ended when the last
	// one came to its end.
	asked        int
	since, ended time.Time
}

func (p *pulse) ask() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	if p.since.IsZero() || p.asked == 1 && p.clock.Since(p.ended) > stale {
		p.since = p.clock.Now()
	}
}

// hear takes in how a request ended. One that its sender has given up says nothing, unless its time was over.
func (p *pulse) hear(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked--
	p.ended = p.clock.Now()
	var status apierrors.APIStatus
	answered := err == nil || errors.As(err, &status)
	switch {
	case answered && p.asked > 0:
		p.since = p.clock.Now()
	case answered, errors.Is(err, context.Canceled) && p.asked == 0:
		p.since = time.Time{}
	}
}

// silence is for how long there has been no answer, zero while there are some, and when nobody has asked for long.
func (p *pulse) silence() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() || p.asked == 0 && p.clock.Since(p.ended) > stale {
		return 0
	}
	return p.clock.Since(p.since)
}

// problem is what health says, empty while all is well.
func (p *pulse) problem() string {
	if silence := p.silence(); silence >= longSilence {
		return fmt.Sprintf("it has not answered for %v", silence.Truncate(time.Second))
	}
	return ""
}

// remind logs a silence, again and again while it lasts.
func (p *pulse) remind(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.clock.After(remind):
		}
		if problem := p.problem(); problem != "" {
			klog.FromContext(ctx).Error(nil, "The API server is silent, and all work waits for it", "why", problem)
		}
	}
}

// felt is a client whose requests show the pulse. Watches do not: they are silent for as long as nothing happens.
type felt struct {
	kube.Client
	pulse *pulse
}

// Fetch implements kube.Client.
func (f *felt) Fetch(ctx context.Context, r kube.Resource, key kube.Key, into kube.Object) (err error) {
	f.pulse.ask()
	defer func() { f.pulse.hear(err) }()
	return f.Client.Fetch(ctx, r, key, into)
}

// Create implements kube.Client.
func (f *felt) Create(ctx context.Context, r kube.Resource, obj, into kube.Object) (err error) {
	f.pulse.ask()
	defer func() { f.pulse.hear(err) }()
	return f.Client.Create(ctx, r, obj, into)
}

// Patch implements kube.Client.
func (f *felt) Patch(ctx context.Context, r kube.Resource, key kube.Key, body kube.PatchBody, into kube.Object) (err error) {
	f.pulse.ask()
	defer func() { f.pulse.hear(err) }()
	return f.Client.Patch(ctx, r, key, body, into)
}

// Delete implements kube.Client.
func (f *felt) Delete(ctx context.Context, r kube.Resource, key kube.Key, options metav1.DeleteOptions) (err error) {
	f.pulse.ask()
	defer func() { f.pulse.hear(err) }()
	return f.Client.Delete(ctx, r, key, options)
}

// List implements kube.Client.
func (f *felt) List(ctx context.Context, r kube.Resource, namespace string, options metav1.ListOptions) (list runtime.Object, err error) {
	f.pulse.ask()
	defer func() { f.pulse.hear(err) }()
	return f.Client.List(ctx, r, namespace, options)
}
