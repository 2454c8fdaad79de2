// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
)

// moment is how the driver holds a call while its caller is killed.
type moment struct {
	name string
	hold func(w *world, t control.Target) (string, error)
}

// moments are the two on either side of the effect.
var moments = []moment{
	{"before its effect", func(w *world, t control.Target) (string, error) { return w.script.Hang(w.ctx, t, 0) }},
	{"after its effect", func(w *world, t control.Target) (string, error) { return w.script.CommitThenHang(w.ctx, t, 0) }},
}

// killed holds the call of a method, does what causes it, kills the caller with -9 while it waits, and starts it again.
func (w *world) killed(method string, m moment, cause func()) {
	w.Helper()
	before := len(w.calls(method))
	rule := w.rule(m.hold(w, control.On(method)))
	cause()
	w.awaitCalls(method, before+1)
	for _, p := range w.cast.Processes() {
		if p != w.cast.Driver {
			p.Kill()
		}
	}
	w.release(rule)
	// The call that nobody waits for must be over: what comes next is then about the restart alone.
	w.await("the held call is over", func() (bool, string) {
		for _, call := range w.calls(method) {
			if call.End.IsZero() {
				return false, text(call)
			}
		}
		return true, ""
	})
	w.mustNot(w.provisioner.Start())
	w.mustNot(w.snapshotter.Start())
}

// TestKill (R34 with real processes): whenever a sidecar is killed, what it was doing is done once, and nothing leaks. The
// end of every test looks at the latter.
func TestKill(t *testing.T) {
	t.Parallel()
	for _, m := range moments {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			w := begin(t, setup{})
			w.repeats = 3
			class, snapshotClass := w.class("class"), w.snapshotClass("delete")
			w.killed("CreateVolume", m, func() { w.claim("data", class) })
			pv := w.bound("data")
			w.killed("CreateSnapshot", m, func() { w.snapshot("snap", "data", snapshotClass) })
			_, content := w.ready("snap")
			w.killed("CreateVolume", m, func() { w.claim("restore", class, fromSnapshot("snap")) })
			w.bound("restore")
			if inventory := w.inventory(); len(inventory.Volumes) != 2 || len(inventory.Snapshots) != 1 {
				t.Errorf("the driver stores %s", text(inventory))
			}
			w.killed("DeleteSnapshot", m, func() { w.deleteSnapshot("snap") })
			w.snapshotGone("snap")
			w.contentGone(content.Name)
			w.killed("DeleteVolume", m, func() { w.deleteClaim("data") })
			w.claimGone("data")
			w.volumeGone(pv.Name)
		})
	}
}

// TestDeletedWhileNobodyWorks: what is deleted while the sidecars are down is deleted when they are up, also what they were
// in the middle of making.
func TestDeletedWhileNobodyWorks(t *testing.T) {
	t.Parallel()
	for _, m := range moments {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			w := begin(t, setup{})
			w.disk("data")
			w.disk("other")
			class := w.snapshotClass("delete")
			w.snapshot("old", "data", class)
			w.ready("old")
			rule := w.rule(m.hold(w, control.On("CreateSnapshot")))
			snap := w.snapshot("new", "data", class)
			w.awaitCalls("CreateSnapshot", 2)
			w.provisioner.Kill()
			w.snapshotter.Kill()
			w.deleteSnapshot("old")
			w.deleteSnapshot("new")
			w.deleteClaim("other")
			w.release(rule)
			w.mustNot(w.provisioner.Start())
			w.mustNot(w.snapshotter.Start())
			w.snapshotGone("old")
			w.snapshotGone("new")
			w.contentGone("snapcontent-" + string(snap.UID))
			w.claimGone("other")
			w.await("the driver has deleted all of that", func() (bool, string) {
				inventory := w.inventory()
				return len(inventory.Snapshots) == 0 && len(inventory.Volumes) == 1, text(inventory)
			})
		})
	}
}

// TestOutcomeOpen: errors behind which the work may have been done are followed by the same call, and not by a second volume
// or snapshot, nor by one that nobody knows of.
func TestOutcomeOpen(t *testing.T) {
	t.Parallel()
	for _, code := range []codes.Code{codes.Internal, codes.DeadlineExceeded, codes.Unavailable} {
		t.Run(code.String(), func(t *testing.T) {
			t.Parallel()
			retry := []string{"--retry-interval-start=200ms"}
			w := begin(t, setup{provisioner: retry, snapshotter: retry})
			w.repeats = 4
			for _, method := range []string{"CreateVolume", "CreateSnapshot", "DeleteSnapshot", "DeleteVolume"} {
				w.rule(w.script.CommitThenFail(w.ctx, control.On(method).Times(2), code))
			}
			w.claim("data", w.class("class"))
			pv := w.bound("data")
			w.snapshot("snap", "data", w.snapshotClass("delete"))
			w.ready("snap")
			if inventory := w.inventory(); len(inventory.Volumes) != 1 || len(inventory.Snapshots) != 1 {
				t.Errorf("the driver stores %s", text(inventory))
			}
			w.deleteSnapshot("snap")
			w.snapshotGone("snap")
			w.deleteClaim("data")
			w.volumeGone(pv.Name)
			for _, method := range []string{"CreateVolume", "CreateSnapshot", "DeleteSnapshot", "DeleteVolume"} {
				if calls := w.calls(method); len(calls) < 3 {
					t.Errorf("%s was called %d times, and its first two answers were errors", method, len(calls))
				}
			}
		})
	}
}

// TestTermination: a sidecar that is asked to end finishes what it has in hand and ends by itself.
func TestTermination(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{})
	rule := w.rule(w.script.Lag(w.ctx, control.On("CreateVolume").Times(1), time.Second))
	w.claim("data", w.class("class"))
	w.awaitCalls("CreateVolume", 1)
	for _, p := range w.cast.Processes() {
		if p == w.cast.Driver {
			continue
		}
		if state := p.Terminate(); state.ExitCode() < 0 {
			t.Errorf("the %s did not end by itself: %v", p.Name, state)
		}
	}
	w.release(rule)
	w.mustNot(w.provisioner.Start())
	w.mustNot(w.snapshotter.Start())
	w.bound("data")
}
