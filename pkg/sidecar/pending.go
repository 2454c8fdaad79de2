// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
)

// shown is what the rooms of one term show of themselves.
type shown struct {
	env   *Env
	rooms []Runnable
	// spaces and lack may be nil.
	spaces func() []Space
	lack   func() string
	// working tells which of the rooms work. A process that stands by hears of everything as well, and never looks at
	// what it hears of: none of that is pending here.
	working map[string]*atomic.Bool
}

// status is what a room has to do, which is nothing unless it works.
func (s *shown) status(room Runnable) reconcile.Status {
	status := room.Status()
	if !s.working[room.Name].Load() {
		status.Work, status.Queued = nil, 0
	}
	return status
}

// works notes that a runnable works, until the function is called that it gives.
func (s *shown) works(name string) (ended func()) {
	flag := s.working[name]
	if flag == nil {
		return func() {}
	}
	flag.Store(true)
	return func() { flag.Store(false) }
}

// show lets the pages and the metrics look at the rooms of a term.
func (l *life) show(env *Env, runnables []Runnable, registry prometheus.Registerer) {
	s := &shown{env: env, working: map[string]*atomic.Bool{}}
	for _, r := range runnables {
		if r.Status != nil {
			s.rooms = append(s.rooms, r)
			s.working[r.Name] = &atomic.Bool{}
		}
		if r.Spaces != nil {
			s.spaces = r.Spaces
		}
		if r.Lack != nil {
			s.lack = r.Lack
		}
	}
	l.shown.Store(s)
	if len(s.rooms) > 0 {
		registry.MustRegister(&pending{shown: s, clock: l.clock})
	}
}

// What a key that is not finished with is doing.
const (
	stateQueued  = "queued"
	stateWorking = "working"
	stateWaiting = "waiting"
	stateFailing = "failing"
)

var states = []string{stateQueued, stateWorking, stateWaiting, stateFailing}

// countStates counts what is in each state. More may be queued than is known one by one.
func countStates(status reconcile.Status) map[string]int {
	counts := map[string]int{}
	for _, w := range status.Work {
		counts[stateOf(w)]++
	}
	known := len(status.Work) - counts[stateQueued]
	counts[stateQueued] = max(counts[stateQueued], status.Queued-known)
	return counts
}

func stateOf(w reconcile.Work) string {
	switch {
	case !w.Begun.IsZero():
		return stateWorking
	case w.Failures > 0:
		return stateFailing
	case !w.Next.IsZero(), w.Why != "":
		return stateWaiting
	}
	return stateQueued
}

// pending measures what the rooms have to do at the moment of the scrape.
type pending struct {
	shown *shown
	clock clock.PassiveClock
}

var (
	depthDesc = prometheus.NewDesc("csi_tandem_pending_objects",
		"Objects that are not finished with: those that wait for a worker, are worked on, wait for a time or a change, or have failed and are tried again.",
		[]string{"kind", "queue", "state"}, nil)
	ageDesc = prometheus.NewDesc("csi_tandem_oldest_pending_seconds",
		"Time since this process began to have to do with the object that it has not finished with for the longest, for each kind and last step.",
		[]string{"kind", "queue", "reason"}, nil)
	latencyDesc = prometheus.NewDesc("csi_tandem_end_to_end_seconds",
		"Time until an object was provisioned, ready or deleted, with all tries and delays on the way.",
		[]string{"kind", "queue", "goal"}, nil)
)

// Describe implements prometheus.Collector.
func (p *pending) Describe(out chan<- *prometheus.Desc) {
	out <- depthDesc
	out <- ageDesc
	out <- latencyDesc
}

// Collect implements prometheus.Collector.
func (p *pending) Collect(out chan<- prometheus.Metric) {
	now := p.clock.Now()
	for _, room := range p.shown.rooms {
		status := p.shown.status(room)
		counts, oldest := countStates(status), map[string]time.Duration{}
		for _, w := range status.Work {
			reason := w.StepName()
			if reason == "" {
				reason = "NotLookedAt"
			}
			oldest[reason] = max(oldest[reason], now.Sub(w.Since))
		}
		for _, state := range states {
			out <- prometheus.MustNewConstMetric(depthDesc, prometheus.GaugeValue, float64(counts[state]), room.Kind, status.Queue, state)
		}
		for reason, age := range oldest {
			out <- prometheus.MustNewConstMetric(ageDesc, prometheus.GaugeValue, age.Seconds(), room.Kind, status.Queue, reason)
		}
		for goal, took := range status.Latencies {
			out <- prometheus.MustNewConstHistogram(latencyDesc, took.Count, took.Sum, took.Within, room.Kind, status.Queue, goal)
		}
	}
}
