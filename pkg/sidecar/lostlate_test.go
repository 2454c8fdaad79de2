// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"testing"
	"time"

	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
)

// TestLeaseLostWithinGrace: the process is told to end, and loses its lease while what is in hand has time to end. Catches work that goes on beside that of who
// has the lease by then.
func TestLeaseLostWithinGrace(t *testing.T) {
	b := elect(t, func(p *Program) {
		p.Options.Election.RetryPeriod, p.Options.Election.RenewDeadline, p.Options.Election.LeaseDuration = 30*time.Second, 60*time.Second, 90*time.Second
	})
	inHand := make(chan struct{})
	b.Setup = func(_ context.Context, e *Env) ([]Runnable, error) {
		q := reconcile.NewQueue(func(ctx context.Context, _ reconcile.Key) (reconcile.Result, error) {
			close(inHand)
			<-ctx.Done()
			return reconcile.Result{}, ctx.Err()
		}, reconcile.Options{Name: "q", Workers: 1, RetryStart: time.Second, RetryMax: time.Minute, Grace: time.Hour})
		q.Add(reconcile.Key{Name: "a"})
		return []Runnable{{Name: "room", Needs: Caches(e.Claims()), Run: q.Run}}, nil
	}
	b.driver.serve(t, b.socket)
	b.begin()
	<-inHand
	until(t, "the lease is watched", func() bool {
		for _, r := range b.api.Requests() {
			if r.Verb == "watch" && r.Resource == "leases" {
				return true
			}
		}
		return false
	})
	b.end()
	rob(b, "somebody")
	_ = b.ended() // or what is in hand goes on
}

// TestRenewalHasTime: a request that takes a third of the time for a renewal is in time, whatever the others took. Catches a wait of one period
// before each, after which a slow API server has lost its chance.
func TestRenewalHasTime(t *testing.T) {
	e := Election{LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 5 * time.Second}
	for takes := time.Duration(0); takes <= e.RenewDeadline/3; takes += 100 * time.Millisecond {
		left := e.RenewDeadline - takes // the renewal before counts from when it was sent
		if rest := left - e.pause(left); rest < takes {
			t.Errorf("requests take %v, and there are %v for one", takes, rest)
		}
	}
	if e.pause(e.RenewDeadline) != e.RetryPeriod || e.pause(0) != 0 || e.pause(-time.Second) != 0 {
		t.Error("not a period after a quick one, or not at once after a late one")
	}
}

// TestLeaseDurationBeyondALease: catches a duration that a lease cannot say.
func TestLeaseDurationBeyondALease(t *testing.T) {
	for _, lasts := range []time.Duration{600_000 * time.Hour, 4294967297 * time.Second} {
		e := Election{Enabled: true, LeaseDuration: lasts, RenewDeadline: 10 * time.Second, RetryPeriod: 5 * time.Second}
		if e.check() == nil {
			t.Error(lasts, "is accepted")
		}
	}
}
