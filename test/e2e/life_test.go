// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
	"github.com/csi-tandem/csi-tandem/test/proxy"
	"github.com/csi-tandem/csi-tandem/test/stage"
)

// patientCalls keeps the deadline of a call out of a test whose calls hang.
const patientCalls = "--timeout=5m"

// isReady waits until a sidecar says that it could work.
func (w *world) isReady(address string) {
	w.Helper()
	w.await("ready", func() (bool, string) {
		page := w.page(address, "/readyz")
		return strings.Contains(page, "ok: caches\n") && !strings.Contains(page, "not ok"), page
	})
}

// TestLeaseIsLost (PW-26, T105): a leader that does not reach the API server for longer than its lease lasts stops its work, a call
// in hand included, before another one begins; it stands by in the same process, and leads again when the other leaves. Catches
// one that ends, one that goes on with the call, and one that never takes part again.
func TestLeaseIsLost(t *testing.T) {
	t.Parallel()
	api, through := behind(t)
	address := freeAddress(t)
	w := begin(t, setup{withoutSnapshotter: true, withoutTopology: true,
		provisioner: append([]string{through, patientCalls, "--http-endpoint=" + address}, electing...)})
	w.await("the first leads", func() (bool, string) { return w.leader() != "", "nobody" })
	first, id := w.leader(), w.provisioner.ID()
	second, err := w.cast.StartSidecar(stage.Provisioner, append([]string{patientCalls}, electing...)...)
	w.mustNot(err)
	class := w.class("class")
	rule := w.rule(w.script.Hang(w.ctx, control.On("CreateVolume").Times(1), 0))
	w.claim("data", class)
	w.awaitCalls("CreateVolume", 1)
	w.mustNot(api.Down())
	w.bound("data") // the second one made it, while the rule still holds the call of the first
	if now := w.leader(); now == first || now == "" {
		t.Errorf("the leader was %q and is %q", first, now)
	}
	w.mustNot(api.Up())
	w.isReady(address)
	if page := w.page(address, "/healthz/leader-election"); page != "ok" {
		t.Errorf("health of the election: %s", page)
	}
	w.release(rule)
	if state := second.Terminate(); state.ExitCode() != 0 {
		t.Errorf("the second ended with %v", state)
	}
	w.await("the first leads again", func() (bool, string) { return w.leader() == first, w.leader() })
	w.claim("again", class)
	w.bound("again")
	if w.provisioner.ID() != id {
		t.Errorf("process %d is now %d", id, w.provisioner.ID())
	}
	if n := w.logged(w.provisioner, "Lost the lease: stopping all work at once"); n != 1 {
		t.Errorf("the loss was told %d times", n)
	}
	w.checkNoOverlap()
	w.mustNot(second.Start())
	w.repeats = 3
}

// TestEndInTheMiddleOfACall (PW-26): a leader that is told to end while the driver hangs waits for a moment only, cancels the call,
// gives its lease back and ends well; the standby takes over at once and gets the volume under the same name. The election's timers
// are minutes, so that one which waits for them, or lets its lease run out, is caught by this test's patience.
func TestEndInTheMiddleOfACall(t *testing.T) {
	t.Parallel()
	slow := []string{
		patientCalls, "--leader-election", "--leader-election-namespace=" + stage.Namespace, "--leader-election-lease-duration=30m",
		"--leader-election-renew-deadline=20m", "--leader-election-retry-period=10m", "--retry-interval-start=200ms",
	}
	address := freeAddress(t)
	w := begin(t, setup{withoutSnapshotter: true, withoutTopology: true, provisioner: slow})
	w.await("the first leads", func() (bool, string) { return w.leader() != "", "nobody" })
	second, err := w.cast.StartSidecar(stage.Provisioner, append([]string{"--http-endpoint=" + address}, slow...)...)
	w.mustNot(err)
	w.isReady(address)
	rule := w.rule(w.script.Hang(w.ctx, control.On("CreateVolume").Times(1), 0))
	w.claim("data", w.class("class"))
	w.awaitCalls("CreateVolume", 1)
	began := time.Now()
	if state := w.provisioner.Terminate(); state.ExitCode() != 0 {
		t.Errorf("ended with %v", state)
	}
	ended := time.Since(began)
	w.awaitCalls("CreateVolume", 2)
	t.Logf("ended after %v, taken over after %v", ended.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	w.bound("data")
	w.release(rule)
	calls := w.calls("CreateVolume")
	if one, two := request[asked](w, calls[0]).Name, request[asked](w, calls[1]).Name; one != two || len(w.inventory().Volumes) != 1 {
		t.Errorf("asked for %s and then for %s, and the driver stores %s", one, two, text(w.inventory().Volumes))
	}
	w.checkNoOverlap()
	if state := second.Terminate(); state.ExitCode() != 0 {
		t.Errorf("the second ended with %v", state)
	}
	w.mustNot(w.provisioner.Start())
	w.mustNot(second.Start())
}

// TestDriverComesBackChanged (T104): a driver that comes back with another face is another driver: the sidecar ends and says why, and
// works for the new one when it is started again. Catches one that goes on with the capabilities that it heard first.
func TestDriverComesBackChanged(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{withoutSnapshotter: true, withoutTopology: true, provisioner: []string{"--retry-interval-start=200ms"}})
	class := w.class("class")
	w.claim("before", class)
	w.bound("before")
	usual := w.cast.Driver.Args
	w.cast.Driver.Kill()
	w.cast.Driver.Args = append(append([]string(nil), usual...), "--capabilities=-CLONE_VOLUME")
	w.mustNot(w.cast.Driver.Start())
	if how := w.ended(w.provisioner); !strings.Contains(how, "exit status 1") || !strings.Contains(w.provisioner.LogTail(3), "came back with other capabilities") {
		t.Errorf("%s: %s", how, w.provisioner.LogTail(3))
	}
	w.mustNot(w.provisioner.Start())
	w.claim("after", class)
	w.bound("after")
}

// TestDriverRestartsOften: each loss of the driver and each return is one line in the log, and no end of the process. Catches one
// that tells the same with each try, and one that is not ready again by itself.
func TestDriverRestartsOften(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	w := begin(t, setup{withoutSnapshotter: true, withoutTopology: true, provisioner: []string{"--http-endpoint=" + address, "--retry-interval-start=200ms"}})
	class := w.class("class")
	id := w.provisioner.ID()
	const times = 3
	for i := range times {
		w.isReady(address)
		w.cast.Driver.Kill()
		w.await("the loss is told", func() (bool, string) {
			page := w.page(address, "/readyz")
			return strings.Contains(page, "not ok: driver"), page
		})
		w.mustNot(w.cast.Driver.Start())
		back := time.Now()
		w.isReady(address)
		t.Logf("ready %v after the driver was started", time.Since(back).Round(time.Millisecond))
		w.claim(fmt.Sprint("data-", i), class)
		w.bound(fmt.Sprint("data-", i))
	}
	if lost, back := w.logged(w.provisioner, "Lost the connection to the driver"), w.logged(w.provisioner, "The driver is back"); lost != times || back != times {
		t.Errorf("%d losses and %d returns were told, there were %d", lost, back, times)
	}
	if w.provisioner.ID() != id {
		t.Error("it is another process")
	}
}

// TestAPIServerIsSick (B025): an API server that refuses everything for longer than a lease lasts is asked again with growing patience,
// and recovery needs nobody. Catches tight loops, each of which costs thousands of requests in this time, and logs that fill a disk.
//
// CSI_TANDEM_OUTAGE=5m lets it go on for so long; otherwise it ends when the lease has run out.
func TestAPIServerIsSick(t *testing.T) {
	t.Parallel()
	api, through := behind(t)
	w := begin(t, setup{withoutSnapshotter: true, provisioner: append([]string{through}, electing...)})
	class := w.class("class")
	w.claim("before", class)
	w.bound("before")
	id, lines := w.provisioner.ID(), w.logged(w.provisioner, "\n")
	refused, began := api.Fail(proxy.Match{}, proxy.Unavailable, proxy.Always), time.Now()
	api.CutConnections()
	w.claim("meanwhile", class)
	w.await("the lease has run out", func() (bool, string) {
		lease, err := w.kube.CoordinationV1().Leases(stage.Namespace).Get(w.ctx, w.ns+"-csi-example", metav1.GetOptions{})
		if err != nil {
			return unreadable(err)
		}
		return isOver(lease.Spec.RenewTime, lease.Spec.LeaseDurationSeconds), text(lease.Spec)
	})
	time.Sleep(outage(t) - time.Since(began))
	hits, told, lasted := refused.Hits(), w.logged(w.provisioner, "\n")-lines, time.Since(began)
	t.Logf("%d requests and %d lines of log while nothing worked for %s", hits, told, lasted.Round(time.Second))
	if most := 300 + 2*int(lasted.Seconds()); hits == 0 || hits > most || told > most {
		t.Errorf("%d requests were refused, and %d lines logged", hits, told)
	}
	refused.Release()
	w.bound("meanwhile")
	if w.provisioner.ID() != id {
		t.Error("it is another process")
	}
}

// outage is how long the API server should refuse everything at least.
func outage(t *testing.T) time.Duration {
	t.Helper()
	wanted := os.Getenv("CSI_TANDEM_OUTAGE")
	if wanted == "" {
		return 0
	}
	lasts, err := time.ParseDuration(wanted)
	if err != nil {
		t.Fatalf("CSI_TANDEM_OUTAGE: %v", err)
	}
	return lasts
}

// TestKindThatIsMissing (PW-25): a kind that the cluster does not have is named in the log and by health, the process waits for it
// without a lease, and works when it is there.
func TestKindThatIsMissing(t *testing.T) {
	t.Parallel()
	api, through := behindAs(t, stage.Snapshotter)
	missing := api.Fail(proxy.Match{Resource: "volumesnapshotcontents"}, proxy.NotFound, proxy.Always)
	address := freeAddress(t)
	w := begin(t, setup{snapshotter: append([]string{through, "--http-endpoint=" + address}, electing...)})
	const name = "volumesnapshotcontents.snapshot.storage.k8s.io"
	w.await("health names what is missing", func() (bool, string) {
		page := w.page(address, "/readyz")
		return strings.Contains(page, "not ok: caches") && strings.Contains(page, name), page
	})
	w.await("the log names what is missing", func() (bool, string) {
		return w.logged(w.snapshotter, name) > 0, w.snapshotter.LogTail(5)
	})
	if lease, err := w.kube.CoordinationV1().Leases(stage.Namespace).Get(w.ctx, w.leases()[1], metav1.GetOptions{}); err == nil && ptr.Deref(lease.Spec.HolderIdentity, "") != "" {
		t.Error("it leads although it cannot work")
	}
	w.disk("data")
	w.snapshot("snap", "data", w.snapshotClass("delete"))
	missing.Release()
	w.ready("snap")
}

// TestSleepingLeader (PW-26): a leader that was stopped, as by a machine that sleeps, finds its lease in other hands when it goes on, and
// stops its work before it has done anything twice.
func TestSleepingLeader(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{withoutSnapshotter: true, withoutTopology: true, provisioner: electing})
	w.await("the first leads", func() (bool, string) { return w.leader() != "", "nobody" })
	first, id := w.leader(), w.provisioner.ID()
	second, err := w.cast.StartSidecar(stage.Provisioner, electing...)
	w.mustNot(err)
	w.mustNot(syscall.Kill(id, syscall.SIGSTOP))
	class := w.class("class")
	w.claim("data", class)
	w.bound("data")
	w.mustNot(syscall.Kill(id, syscall.SIGCONT))
	w.await("the first has noticed", func() (bool, string) {
		return w.logged(w.provisioner, "Lost the lease") == 1, w.provisioner.LogTail(3)
	})
	if now := w.leader(); now == first || now == "" {
		t.Errorf("the leader was %q and is %q", first, now)
	}
	w.claim("after", class)
	w.bound("after")
	w.checkNoOverlap()
	if !second.IsRunning() {
		t.Error("the second has ended")
	}
}
