// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

var leaseKey = kube.Key{Namespace: "ns", Name: lease}

// locks are candidates for one lease, with one clock.
type locks struct {
	*testing.T
	api   *kit.API
	clock *testclock.FakeClock
}

func newLocks(t *testing.T) *locks {
	clk := testclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	return &locks{T: t, api: kit.NewAPI(clk, &kit.Log{}), clock: clk}
}

func (l *locks) candidate(identity string) *leaseLock {
	return &leaseLock{client: l.api, key: leaseKey, identity: identity, lasts: 15 * time.Second, clock: l.clock}
}

func (l *locks) take(lock *leaseLock, want bool) {
	l.Helper()
	if held, err := lock.take(l.Context()); held != want || err != nil {
		l.Errorf("%s: held %v (%v), want %v", lock.identity, held, err, want)
	}
}

// spec is the lease without its times, and how long ago it was renewed.
func (l *locks) spec() string {
	found, _ := kit.Read[*coordinationv1.Lease](l.api, leaseKey)
	spec := found.Spec
	ago := l.clock.Since(spec.RenewTime.Time)
	spec.RenewTime, spec.AcquireTime = nil, nil
	text, _ := json.Marshal(spec)
	return string(text) + " " + ago.String()
}

func (l *locks) wants(want string) {
	l.Helper()
	if diff := cmp.Diff(want, l.spec()); diff != "" {
		l.Error(diff)
	}
}

// The fields of a Lease are a protocol between this program, its older versions and the sidecars before it.
func TestLeaseIsHeldRenewedAndReleased(t *testing.T) {
	l := newLocks(t)
	one, two := l.candidate("one"), l.candidate("two")
	l.take(one, true)
	l.wants(`{"holderIdentity":"one","leaseDurationSeconds":15,"leaseTransitions":0} 0s`)
	l.take(two, false)
	l.clock.Step(10 * time.Second)
	if err := one.renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.take(two, false)
	l.clock.Step(10 * time.Second) // more than the lease lasts since it was taken, less since it was renewed
	l.take(two, false)
	l.wants(`{"holderIdentity":"one","leaseDurationSeconds":15,"leaseTransitions":0} 10s`)
	if err := one.release(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.wants(`{"holderIdentity":"","leaseDurationSeconds":1,"leaseTransitions":0} 0s`)
	l.take(two, true)
	l.wants(`{"holderIdentity":"two","leaseDurationSeconds":15,"leaseTransitions":1} 0s`)
}

// A lease that tells less than its holder counts on lets two work at once.
func TestPartsOfASecondCount(t *testing.T) {
	l := newLocks(t)
	one := l.candidate("one")
	one.lasts = 15*time.Second + time.Millisecond
	l.take(one, true)
	l.wants(`{"holderIdentity":"one","leaseDurationSeconds":16,"leaseTransitions":0} 0s`)
}

// The clocks of two machines differ: what a lease says about times is not compared with the own clock, so
// that a holder from the past is waited for as long as its lease lasts, and then no more.
func TestLeaseOfTheDeadRunsOut(t *testing.T) {
	l := newLocks(t)
	kit.PutJSON[*coordinationv1.Lease](l.api, `{"metadata":{"namespace":"ns","name":"`+lease+`"},
		"spec":{"holderIdentity":"dead","leaseDurationSeconds":15,"renewTime":"2001-01-01T00:00:00.000000Z","leaseTransitions":4}}`)
	one := l.candidate("one")
	l.take(one, false)
	l.clock.Step(14 * time.Second)
	l.take(one, false)
	l.clock.Step(2 * time.Second)
	l.take(one, true)
	l.wants(`{"holderIdentity":"one","leaseDurationSeconds":15,"leaseTransitions":5} 0s`)
}

func TestRenewal(t *testing.T) {
	slow := apierrors.NewTimeoutError("slow", 1)
	for name, row := range map[string]struct {
		happens func(l *locks)
		lost    bool
		fails   bool
		holder  string
	}{
		"nothing happens":                  {func(*locks) {}, false, false, "one"},
		"an answer that was lost":          {func(l *locks) { l.api.Lose("patch", "leases", slow, 1) }, false, true, "one"},
		"an API server that does not work": {func(l *locks) { l.api.Fail("patch", "leases", slow, 1) }, false, true, "one"},
		"an administrator edits the lease": {func(l *locks) {
			kit.Edit(l.api, leaseKey, func(o *coordinationv1.Lease) { o.Labels = map[string]string{"seen": "yes"} })
		}, false, false, "one"},
		"an administrator deletes the lease": {func(l *locks) { kit.Remove[*coordinationv1.Lease](l.api, leaseKey) }, false, false, "one"},
		"another one has it": {func(l *locks) {
			kit.Edit(l.api, leaseKey, func(o *coordinationv1.Lease) {
				o.Spec.HolderIdentity, o.Spec.RenewTime = ptr.To("two"), &metav1.MicroTime{Time: l.clock.Now()}
			})
		}, true, true, "two"},
		"another one had it while this one slept, and gave it back": {func(l *locks) {
			two := l.candidate("two")
			l.take(two, false)
			l.clock.Step(time.Minute)
			l.take(two, true)
			if err := two.release(t.Context()); err != nil {
				t.Error(err)
			}
		}, true, true, ""},
		"it was made anew, and was another's": {func(l *locks) {
			kit.Remove[*coordinationv1.Lease](l.api, leaseKey)
			two := l.candidate("two")
			l.take(two, true)
			if err := two.release(t.Context()); err != nil {
				t.Error(err)
			}
		}, true, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLocks(t)
			one := l.candidate("one")
			l.take(one, true)
			row.happens(l)
			l.clock.Step(time.Second)
			err := one.renew(t.Context())
			if errors.Is(err, errLeaseLost) != row.lost || (err != nil) != row.fails {
				t.Errorf("got %v", err)
			}
			l.clock.Step(time.Second)
			if again := one.renew(t.Context()); (again != nil) != row.lost {
				t.Errorf("again: got %v", again)
			}
			if found, _ := kit.Read[*coordinationv1.Lease](l.api, leaseKey); holderOf(found) != row.holder {
				t.Errorf("%s holds it", holderOf(found))
			}
		})
	}
}

// A lease that is gone when a process wakes up may have been another's before it went. Catches a process that goes on with what it remembers.
func TestLeaseThatWentWhileAsleep(t *testing.T) {
	l := newLocks(t)
	one := l.candidate("one")
	l.take(one, true)
	kit.Remove[*coordinationv1.Lease](l.api, leaseKey)
	l.clock.Step(time.Minute)
	if err := one.renew(t.Context()); !errors.Is(err, errLeaseLost) {
		t.Errorf("got %v", err)
	}
	if _, there := kit.Read[*coordinationv1.Lease](l.api, leaseKey); there {
		t.Error("made anew as if nothing had been")
	}
}

// Who gives back what another one has taken meanwhile would let a third one in.
func TestReleaseLeavesTheLeaseOfAnother(t *testing.T) {
	l := newLocks(t)
	one := l.candidate("one")
	l.take(one, true)
	kit.Edit(l.api, leaseKey, func(o *coordinationv1.Lease) { o.Spec.HolderIdentity = ptr.To("two") })
	if err := one.release(t.Context()); err != nil {
		t.Error(err)
	}
	if found, _ := kit.Read[*coordinationv1.Lease](l.api, leaseKey); holderOf(found) != "two" {
		t.Errorf("held by %q", holderOf(found))
	}
}

func TestTwoWhoTakeAtOnce(t *testing.T) {
	for name, exists := range map[string]bool{"a new lease": false, "a free lease": true} {
		t.Run(name, func(t *testing.T) {
			l := newLocks(t)
			verb := "create"
			if exists {
				verb = "patch"
				kit.PutJSON[*coordinationv1.Lease](l.api, `{"metadata":{"namespace":"ns","name":"`+lease+`"},"spec":{}}`)
			}
			l.api.Script(kit.Rule{Verb: verb, Resource: "leases", Times: 1, Meanwhile: func() { l.take(l.candidate("faster"), true) }})
			l.take(l.candidate("one"), false)
			if found, _ := kit.Read[*coordinationv1.Lease](l.api, leaseKey); holderOf(found) != "faster" {
				t.Errorf("held by %q", holderOf(found))
			}
		})
	}
}

// Health is for who hangs: one that is late by more than the lease lasts, and some more, helps nobody.
func TestOverdueLease(t *testing.T) {
	l := newLocks(t)
	one, two, h := l.candidate("one"), l.candidate("two"), newHealth()
	h.lease(one)
	l.take(one, true)
	l.take(two, false)
	l.clock.Step(15*time.Second + leaseTolerance)
	if err := h.overdue(); err != nil {
		t.Errorf("too early: %v", err)
	}
	l.clock.Step(time.Second)
	if err := h.overdue(); err == nil || err.Error() != "lease d-example: failed election to renew leadership on lease d-example" {
		t.Errorf("got %v", err)
	}
	h.lease(two)
	if err := h.overdue(); err != nil {
		t.Errorf("a standby is never late: %v", err)
	}
}

// What a record needs to know of those who led stands on the lease from the very write that takes it, and outlives those who know nothing of it.
// Catches a note that is written later, which a process that dies first never makes, and one that says of others that they were like us.
func TestLeaseIsNoted(t *testing.T) {
	l := newLocks(t)
	noting := func(identity string) *leaseLock {
		lock := l.candidate(identity)
		lock.noted = true
		return lock
	}
	notes := func(want string) {
		t.Helper()
		found, _ := kit.Read[*coordinationv1.Lease](l.api, leaseKey)
		if got := found.Annotations["csi-tandem.io/led"]; got != want {
			t.Errorf("noted is %q, want %q", got, want)
		}
	}
	pass := func(lock *leaseLock) {
		t.Helper()
		if err := lock.release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	one, two, other := noting("one"), noting("two"), l.candidate("other")
	l.take(one, true)
	notes("0-0")
	first := one.Tenure().String()
	if err := one.renew(t.Context()); err != nil {
		t.Error(err)
	}
	notes("0-0")
	pass(one)
	l.take(two, true)
	notes("0-1")
	if !two.Tenure().Covers(first) {
		t.Error("one of ours counts as somebody else")
	}
	pass(two)
	l.take(other, true)
	notes("0-1")
	pass(other)
	l.take(one, true)
	notes("3-3")
	if one.Tenure().Covers(first) || !one.Tenure().Covers(one.Tenure().String()) {
		t.Error("somebody else counts as one of ours", one.Tenure(), first)
	}
}

// Who cannot write down what it begins takes back what it noted, and the next one trusts nothing from before. Catches a process that counts as one of
// those who keep the record, and a word that it is off before it is.
func TestLeaseIsDisowned(t *testing.T) {
	l := newLocks(t)
	one, two := l.candidate("one"), l.candidate("two")
	one.noted, two.noted = true, true
	l.take(one, true)
	if one.disown() {
		t.Error("off before any write")
	}
	if err := one.renew(t.Context()); err != nil {
		t.Error(err)
	}
	if !one.disown() {
		t.Error("not off after the renewal")
	}
	before := one.Tenure().String()
	if err := one.release(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.take(two, true)
	if tenure := two.Tenure(); tenure.Covers(before) || !tenure.Covers(tenure.String()) {
		t.Errorf("%+v covers %s", tenure, before)
	}
}
