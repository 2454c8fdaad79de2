// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

const lease = "d-example"

// elect makes a process that takes part in an election.
func elect(t *testing.T, change func(*Program)) *being {
	t.Helper()
	return conceive(t, func(p *Program) {
		p.Options.Election.Enabled = true
		if change != nil {
			change(p)
		}
	})
}

func TestEndReleasesTheLeaseAfterTheWork(t *testing.T) {
	b := elect(t, func(p *Program) { p.Options.Election.Labels = map[string]string{"team": "storage"} })
	b.driver.serve(t, b.socket)
	b.begin()
	b.untilJournal("room works")
	found, _ := kit.Read[*coordinationv1.Lease](b.api, kube.Key{Namespace: "ns", Name: lease})
	if b.holder(lease) != b.life.holder || found.Labels["team"] != "storage" {
		t.Errorf("holder %q, labels %v", b.holder(lease), found.Labels)
	}
	var last string // what had happened when the lease was written for the last time
	b.api.Script(kit.Rule{Verb: "patch", Resource: "leases", Meanwhile: func() { last = b.journal.String() }})
	if err := b.finish(); err != nil {
		t.Errorf("ended with %v", err)
	}
	if last != "room works, room stops" || b.holder(lease) != "" {
		t.Errorf("released after: %s; holder %q", last, b.holder(lease))
	}
}

func TestStandbyTakesOverAtOnce(t *testing.T) {
	// With a retry period of half a minute only the watch can be quick.
	slow := func(p *Program) {
		p.Options.Election.RetryPeriod, p.Options.Election.RenewDeadline, p.Options.Election.LeaseDuration = 30*time.Second, 60*time.Second, 90*time.Second
	}
	one := elect(t, slow)
	stop := one.driver.serve(t, one.socket)
	defer stop()
	one.begin()
	one.untilJournal("room works")

	two := elect(t, slow)
	two.api, two.life.client, two.life.leaseClient, two.life.access.client = one.api, one.api, one.api, one.api
	two.Options.CSIAddress = one.socket
	two.begin()
	until(t, "the standby is warm and ready", func() bool { code, _ := two.fetch("/readyz"); return code == http.StatusOK })
	if two.journal.String() != "" {
		t.Error("two lead at once")
	}
	_ = one.finish()
	two.untilJournal("room works")
	_ = two.finish()
}

// A room that asks for the tenure knows it once it works, and has it noted on the lease. Who does not ask notes nothing: it may be one that keeps no
// record. Catches a room that is told of the lease before it was taken, and a process that vouches for what it does not do.
func TestTenureIsKnownAtWork(t *testing.T) {
	for title, row := range map[string]struct{ elects, asks bool }{"elected": {true, true}, "elected, nobody asks": {true, false}, "no election": {false, true}} {
		t.Run(title, func(t *testing.T) {
			b := elect(t, func(p *Program) { p.Options.Election.Enabled = row.elects })
			known := make(chan kube.Tenure, 1)
			b.Setup = func(_ context.Context, e *Env) ([]Runnable, error) {
				tenure := func() kube.Tenure { return kube.Tenure{} }
				if row.asks {
					tenure = e.Tenure()
				}
				if before := tenure(); before.Lease != "" {
					t.Error("known before it leads:", before)
				}
				return []Runnable{{Name: "room", Run: func(ctx context.Context) error {
					known <- tenure()
					<-ctx.Done()
					return nil
				}}}, nil
			}
			kit.PutJSON[*coordinationv1.Lease](b.api, `{"metadata":{"namespace":"ns","name":"`+lease+`","uid":"l"},"spec":{"holderIdentity":"","leaseTransitions":6}}`)
			b.driver.serve(t, b.socket)
			b.begin()
			want, note := kube.Tenure{}, ""
			if row.elects && row.asks {
				want, note = kube.Tenure{Lease: "l", First: 7, Last: 7}, "7-7"
			}
			if got := <-known; got != want {
				t.Errorf("known is %+v, want %+v", got, want)
			}
			if found, _ := kit.Read[*coordinationv1.Lease](b.api, kube.Key{Namespace: "ns", Name: lease}); found.Annotations["csi-tandem.io/led"] != note {
				t.Errorf("noted is %v, want %q", found.Annotations, note)
			}
			_ = b.finish()
		})
	}
}

// rob lets another process hold the lease, as if ours had slept for long.
func rob(b *being, by string) {
	kit.Edit(b.api, kube.Key{Namespace: "ns", Name: lease}, func(l *coordinationv1.Lease) {
		l.Spec.HolderIdentity = ptr.To(by)
		l.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
	})
}

func TestLostLeaseIsAState(t *testing.T) {
	b := elect(t, nil)
	b.driver.serve(t, b.socket)
	b.begin()
	b.untilJournal("room works")
	rob(b, "somebody")
	b.untilJournal("room works, room stops")
	if b.holder(lease) != "somebody" {
		t.Error("took the lease from who holds it")
	}
	until(t, "ready to take over", func() bool { code, _ := b.fetch("/readyz"); return code == http.StatusOK })
	rob(b, "") // released
	b.untilJournal("room works, room stops, room works")
}

// With a retry period of half a minute only the watch can tell that another one has taken the lease.
func TestRobbedLeaseEndsTheWorkAtOnce(t *testing.T) {
	b := elect(t, func(p *Program) {
		p.Options.Election.RetryPeriod, p.Options.Election.RenewDeadline, p.Options.Election.LeaseDuration = 30*time.Second, 60*time.Second, 90*time.Second
	})
	b.driver.serve(t, b.socket)
	b.begin()
	b.untilJournal("room works")
	until(t, "the lease is watched", func() bool {
		return slices.ContainsFunc(b.api.Requests(), func(r kit.Request) bool { return r.Verb == "watch" && r.Resource == "leases" })
	})
	rob(b, "somebody")
	b.untilJournal("room works, room stops")
}

func TestAPIOutageLosesTheLeaseAndNotTheProcess(t *testing.T) {
	b := elect(t, nil)
	b.driver.serve(t, b.socket)
	b.begin()
	b.untilJournal("room works")
	heal := b.api.Script(kit.Rule{Resource: "leases", Err: apierrors.NewInternalError(errors.New("down"))})
	b.untilJournal("room works, room stops")
	heal()
	b.untilJournal("room works, room stops, room works")
}

func TestTwoLeases(t *testing.T) {
	b := elect(t, func(*Program) {})
	b.Setup = func(_ context.Context, e *Env) ([]Runnable, error) {
		return []Runnable{b.worker("content", "", e.Contents()), b.worker("binding", BinderLease, e.Snapshots())}, nil
	}
	kit.PutJSON[*coordinationv1.Lease](b.api, `{"metadata":{"namespace":"ns","name":"snapshot-controller-leader"},
		"spec":{"holderIdentity":"incumbent","leaseDurationSeconds":3600,"renewTime":"`+time.Now().Format("2006-01-02T15:04:05.000000Z07:00")+`"}}`)
	b.driver.serve(t, b.socket)
	b.begin()
	b.untilJournal("content works") // binding is somebody else's, which holds up nobody
	kit.Remove[*coordinationv1.Lease](b.api, kube.Key{Namespace: "ns", Name: BinderLease})
	b.untilJournal("content works, binding works")
	_ = b.finish()
	if b.holder(lease) != "" || b.holder(BinderLease) != "" {
		t.Error("a lease was not released")
	}
}

func TestMissingRightsOfABinderHoldUpNoContent(t *testing.T) {
	b := elect(t, func(*Program) {})
	b.Setup = func(_ context.Context, e *Env) ([]Runnable, error) {
		binding := b.worker("binding", BinderLease, e.Snapshots())
		return []Runnable{b.worker("content", "", e.Contents()), binding}, nil
	}
	grant := b.api.Deny("list", "volumesnapshots")
	defer grant()
	b.driver.serve(t, b.socket)
	b.begin()
	b.untilJournal("content works")
	until(t, "the missing right is told", func() bool {
		code, text := b.fetch("/readyz")
		return code == http.StatusServiceUnavailable && strings.Contains(text, "not ok: caches: waiting for the first list of volumesnapshots.snapshot.storage.k8s.io") &&
			strings.Contains(text, "missing right: list on volumesnapshots of snapshot.storage.k8s.io, needed for keeping a cache of them; bind a role such as that in deploy/sample/rbac.yaml to "+kit.Account)
	})
	if lists := slices.DeleteFunc(b.api.Requests(), func(r kit.Request) bool { return r.Resource != "volumesnapshots" }); len(lists) > 0 {
		t.Errorf("asked for what is refused: %v", lists)
	}
	if b.holder(BinderLease) != "" {
		t.Error("holds a lease that it cannot use")
	}
}

func TestRightThatComesLaterBeginsAnew(t *testing.T) {
	right := Right{Group: "snapshot.storage.k8s.io", Resource: "volumesnapshots", Verbs: "list watch", Why: "seeing more"}
	b := conceive(t, func(*Program) {})
	b.Setup = func(ctx context.Context, e *Env) ([]Runnable, error) {
		if e.AllowsOrAwaits(ctx, right) {
			return []Runnable{b.worker("full", "", e.Contents(), e.Snapshots())}, nil
		}
		return []Runnable{b.worker("blind", "", e.Contents())}, nil
	}
	grant := b.api.Deny("watch", "volumesnapshots")
	b.driver.serve(t, b.socket)
	b.begin()
	b.untilJournal("blind works")
	grant()
	b.access.require(Right{Resource: "pods", Verbs: "get"}) // looks at once, and not in ten seconds
	b.untilJournal("blind works, blind stops, full works")
}

func TestOptionalWorkHoldsUpNobody(t *testing.T) {
	b := conceive(t, func(*Program) {})
	b.Setup = func(_ context.Context, e *Env) ([]Runnable, error) {
		more := b.worker("more", "", e.Snapshots())
		more.Optional = true
		return []Runnable{b.worker("main", "", e.Claims()), more}, nil
	}
	grant := b.api.Deny("list", "volumesnapshots")
	b.driver.serve(t, b.socket)
	b.begin()
	b.untilJournal("main works")
	until(t, "ready, with a note", func() bool {
		code, text := b.fetch("/readyz")
		return code == 200 && strings.Contains(text, "note: waiting: waiting for the first list of volumesnapshots")
	})
	grant()
	b.access.require(Right{Resource: "pods", Verbs: "get"})
	b.untilJournal("main works, more works")
	until(t, "nothing is noted any more", func() bool { _, text := b.fetch("/readyz"); return !strings.Contains(text, "note:") })
}
