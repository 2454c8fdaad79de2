// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
	"github.com/csi-tandem/csi-tandem/test/stage"
)

// electing are short times, so that what is about leading does not take long.
var electing = []string{
	"--leader-election", "--leader-election-namespace=" + stage.Namespace, "--leader-election-lease-duration=6s",
	"--leader-election-renew-deadline=4s", "--leader-election-retry-period=1s", "--retry-interval-start=200ms",
}

// leader is who holds the lease of the world's driver.
func (w *world) leader() string {
	w.Helper()
	leases, err := w.kube.CoordinationV1().Leases(stage.Namespace).List(w.ctx, metav1.ListOptions{})
	w.mustNot(err)
	for _, lease := range leases.Items {
		if lease.Name == w.ns+"-csi-example" {
			return ptr.Deref(lease.Spec.HolderIdentity, "")
		}
	}
	return ""
}

// checkNoOverlap: never were there two calls for one volume at the same time, which is what two leaders would look like.
func (w *world) checkNoOverlap() {
	w.Helper()
	calls := w.calls("CreateVolume")
	for i, one := range calls {
		for _, other := range calls[i+1:] {
			if request[asked](w, one).Name == request[asked](w, other).Name && other.Start.Before(one.End) {
				w.Errorf("two calls for %s at the same time: from %v and from %v", request[asked](w, one).Name, one.Start, other.Start)
			}
		}
	}
}

// TestLeaderLeaves (B071, T105, PW-26): of two sidecars one works. When it is told to end in the middle of a call, it gives the lease
// back and ends well, the other goes on, and the two never work at once. A leader that is killed and started again is not kept
// out by its own lease for longer than that lasts.
func TestLeaderLeaves(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{withoutSnapshotter: true, withoutTopology: true, provisioner: electing})
	w.await("somebody leads", func() (bool, string) { return w.leader() != "", "nobody" })
	first := w.leader()
	second, err := w.cast.StartSidecar(stage.Provisioner, electing...)
	w.mustNot(err)
	class := w.class("class")
	w.claim("before", class)
	w.bound("before")
	rule := w.rule(w.script.Hang(w.ctx, control.On("CreateVolume"), 0))
	w.claim("data", class)
	w.awaitCalls("CreateVolume", 2)
	ended := make(chan int, 1)
	go func() { ended <- w.provisioner.Terminate().ExitCode() }()
	w.release(rule)
	if code := <-ended; code != 0 {
		t.Errorf("the leader ended with %d", code)
	}
	w.bound("data")
	w.claim("after", class)
	w.bound("after")
	if now := w.leader(); now == first || now == "" {
		t.Errorf("the leader was %q and is %q", first, now)
	}
	w.mustNot(second.Restart())
	w.claim("again", class)
	w.bound("again")
	w.checkNoOverlap()
	w.mustNot(w.provisioner.Start())
	w.repeats = 3
}

// TestAPIServerGoes (B025): an API server that is away for longer than a lease lasts ends no process. When it is back, the lease is
// taken again, and the work goes on. Catches one that ends when it cannot renew.
func TestAPIServerGoes(t *testing.T) {
	t.Parallel()
	api, through := behind(t)
	w := begin(t, setup{withoutSnapshotter: true, withoutTopology: true, provisioner: append([]string{through}, electing...)})
	class := w.class("class")
	w.claim("before", class)
	w.bound("before")
	id, holder := w.provisioner.ID(), w.leader()
	w.mustNot(api.Down())
	w.claim("meanwhile", class)
	// What shows that a lease has run out is that another one could have it.
	w.await("the lease has run out", func() (bool, string) {
		lease, err := w.kube.CoordinationV1().Leases(stage.Namespace).Get(w.ctx, w.ns+"-csi-example", metav1.GetOptions{})
		if err != nil {
			return unreadable(err)
		}
		return isOver(lease.Spec.RenewTime, lease.Spec.LeaseDurationSeconds), text(lease.Spec)
	})
	if calls := w.calls("CreateVolume"); len(calls) != 1 {
		t.Errorf("CreateVolume was called %d times, although nothing new can have been heard of", len(calls))
	}
	w.mustNot(api.Up())
	w.bound("meanwhile")
	if now := w.provisioner.ID(); now != id || holder == "" || w.leader() == "" {
		t.Errorf("process %d is now %d, leader %q is now %q", id, now, holder, w.leader())
	}
	w.checkNoOverlap()
}

func isOver(renewed *metav1.MicroTime, seconds *int32) bool {
	return renewed != nil && seconds != nil && time.Since(renewed.Time) > time.Duration(*seconds)*time.Second
}
