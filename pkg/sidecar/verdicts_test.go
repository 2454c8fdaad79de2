// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

// TestRightTakenThenNewTerm: a right that has come is taken away, and a term begins anew, as after a lost lease. Catches a term that is told of the right by an old
// answer as soon as it has begun without, and begins anew, again and again.
func TestRightTakenThenNewTerm(t *testing.T) {
	var b *being
	var setups atomic.Int32
	see := Right{Group: "snapshot.storage.k8s.io", Resource: "volumesnapshots", Verbs: "list watch", Why: "seeing whether a snapshot is there"}
	b = conceive(t, func(p *Program) {
		p.Options.CSIAddress, p.Options.Election.Enabled = "", true
		p.Lease = func(string) string { return lease }
		p.Setup = func(ctx context.Context, e *Env) ([]Runnable, error) {
			setups.Add(1)
			needs := Caches(e.Contents())
			if e.AllowsOrAwaits(ctx, see) {
				needs = append(needs, e.Snapshots())
			}
			return []Runnable{b.worker("room", "", needs...)}, nil
		}
	})
	b.begin()
	b.untilJournal("room works")
	b.api.Deny("list", "volumesnapshots")
	b.api.Deny("watch", "volumesnapshots")
	rob(b, "somebody")
	b.untilJournal("room works, room stops")
	before := len(b.api.Requests())
	rob(b, "")
	time.Sleep(2 * time.Second)
	if n := setups.Load(); n > 3 {
		t.Errorf("set up %d times in two seconds, %d requests; journal %.300s", n, len(b.api.Requests())-before, b.journal)
	}
}

// TestRefusedThenErrorsThenNewTerm: a right is refused, then nobody answers, and a term begins anew. Catches one that takes the right for there and is told by the old
// answer that it is not, again and again.
func TestRefusedThenErrorsThenNewTerm(t *testing.T) {
	b, server := withoutSnapshots(t)
	var setups atomic.Int32
	inner := b.Setup
	b.Setup = func(ctx context.Context, e *Env) ([]Runnable, error) { setups.Add(1); return inner(ctx, e) }
	b.life.client = server
	b.Lease = func(string) string { return lease }
	b.begin()
	b.untilJournal("room works")
	server.down.Store(true)
	rob(b, "somebody")
	b.untilJournal("room works, room stops")
	before := len(b.api.Requests())
	rob(b, "")
	time.Sleep(2 * time.Second)
	if n := setups.Load(); n > 3 {
		t.Errorf("set up %d times in two seconds, %d requests; journal %.300s", n, len(b.api.Requests())-before, b.journal)
	}
}
