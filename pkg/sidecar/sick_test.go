// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	testclock "k8s.io/utils/clock/testing"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestAQuestionThatFailsGrantsNothing: a right that the API server has refused is not there because it does not answer the next time.
func TestAQuestionThatFailsGrantsNothing(t *testing.T) {
	clk := testclock.NewFakeClock(time.Unix(0, 0))
	api := kit.NewAPI(clk, &kit.Log{})
	api.Deny("watch", "volumesnapshots")
	a := newAccess(api, clk, newHealth(), cure{manifest: "x"})
	right := Right{Group: "snapshot.storage.k8s.io", Resource: "volumesnapshots", Verbs: "list watch", Why: "binding"}
	var log heard
	ctx := log.context(t.Context())
	a.require(right)
	a.ask(ctx, true)
	a.report(klog.FromContext(ctx))
	if log.count("missing right: watch on volumesnapshots") != 1 {
		t.Fatalf("logged %q", log.lines)
	}
	arrived := make(chan error, 1)
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	go func() { arrived <- a.await(waiting, right) }()
	time.Sleep(20 * time.Millisecond)

	api.Script(kit.Rule{Resource: "selfsubjectaccessreviews", Err: apierrors.NewInternalError(errors.New("down"))})
	a.ask(ctx, false)
	a.report(klog.FromContext(ctx))
	select {
	case err := <-arrived:
		t.Errorf("a right that is refused has come with an API server that does not answer (%v)", err)
	case <-time.After(100 * time.Millisecond):
	}
	if log.count("No longer so") != 0 {
		t.Errorf("told as given: %q", log.lines)
	}
}

// sick answers the questions for one right as it is told.
type sick struct {
	kube.Client
	down atomic.Bool
}

func (s *sick) Create(ctx context.Context, r kube.Resource, obj, into kube.Object) error {
	if r.Plural == "selfsubjectaccessreviews" && s.down.Load() {
		return apierrors.NewInternalError(errors.New("down"))
	}
	return s.Client.Create(ctx, r, obj, into)
}

// TestASickServerEndsNoWork: while a feature waits for a right that was never given, one moment in which questions fail must not stop all
// work and give the lease away: nothing has come.
func TestASickServerEndsNoWork(t *testing.T) {
	var b *being
	var setups atomic.Int32
	awaited := Right{Group: "snapshot.storage.k8s.io", Resource: "volumesnapshots", Verbs: "list", Why: "restoring"}
	b = conceive(t, func(p *Program) {
		p.Options.CSIAddress, p.Options.Election.Enabled = "", true
		p.Lease = func(string) string { return "d.example" }
		p.Setup = func(ctx context.Context, e *Env) ([]Runnable, error) {
			setups.Add(1)
			e.AllowsOrAwaits(ctx, awaited)
			return []Runnable{b.worker("room", "", e.Claims())}, nil
		}
	})
	b.api.Deny("list", "volumesnapshots")
	server := &sick{Client: b.api}
	b.access.client = server
	b.begin()
	b.untilJournal("room works")
	server.down.Store(true)
	b.access.require(Right{Resource: "pods", Verbs: "get", Why: "any reason to ask"}) // as the ten seconds between two looks do
	time.Sleep(300 * time.Millisecond)
	server.down.Store(false)
	b.access.require(Right{Resource: "pods", Verbs: "get", Why: "any reason to ask"})
	time.Sleep(300 * time.Millisecond)
	if got := b.journal.String(); got != "room works" {
		n := len(got)
		t.Errorf("the work was stopped although nothing has come: set up %d times, %.120s... (%d bytes)", setups.Load(), got, n)
	}
}

// withoutSnapshots is a program as cmd/snapshotter is: beside the driver it sees the snapshots where it may, and else works without them.
func withoutSnapshots(t *testing.T) (*being, *sick) {
	t.Helper()
	var b *being
	see := Right{Group: "snapshot.storage.k8s.io", Resource: "volumesnapshots", Verbs: "list watch", Why: "seeing whether a snapshot is there"}
	b = conceive(t, func(p *Program) {
		p.Options.CSIAddress, p.Options.Election.Enabled = "", true
		p.Lease = func(string) string { return "d.example" }
		p.Setup = func(ctx context.Context, e *Env) ([]Runnable, error) {
			needs := Caches(e.Contents())
			if e.AllowsOrAwaits(ctx, see) {
				needs = append(needs, e.Snapshots())
			}
			return []Runnable{b.worker("room", "", needs...)}, nil
		}
	})
	b.api.Deny("list", "volumesnapshots")
	b.api.Deny("watch", "volumesnapshots")
	server := &sick{Client: b.api}
	b.access.client = server
	return b, server
}

// TestAnOutageLeavesTheWorkGoing: a process that works without an optional right works on, or again, when an API server that was down for
// some seconds is back. Catches one that takes the outage for the right, waits for a cache that it may not fill, and does so until somebody
// starts it anew.
func TestAnOutageLeavesTheWorkGoing(t *testing.T) {
	b, server := withoutSnapshots(t)
	b.begin()
	b.untilJournal("room works")
	server.down.Store(true)
	b.access.require(Right{Resource: "pods", Verbs: "get", Why: "any reason to ask"}) // as the ten seconds between two looks do
	time.Sleep(500 * time.Millisecond)
	server.down.Store(false)
	b.access.require(Right{Resource: "pods", Verbs: "get", Why: "any reason to ask"})
	working := func() bool { return strings.HasSuffix(b.journal.String(), "room works") }
	for end := time.Now().Add(25 * time.Second); !working() && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
	}
	if _, text := b.fetch("/readyz"); !working() {
		t.Errorf("25 s after the outage nothing works: %s\n%s", b.journal, text)
	}
}

// TestAStartInAnOutageComesToWork: the same for a process whose first question of all gets no answer.
func TestAStartInAnOutageComesToWork(t *testing.T) {
	b, server := withoutSnapshots(t)
	server.down.Store(true)
	b.begin()
	time.Sleep(300 * time.Millisecond)
	server.down.Store(false)
	working := func() bool { return strings.HasSuffix(b.journal.String(), "room works") }
	for end := time.Now().Add(25 * time.Second); !working() && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
	}
	if _, text := b.fetch("/readyz"); !working() {
		t.Errorf("25 s after the outage nothing works: %s\n%s", b.journal, text)
	}
}
