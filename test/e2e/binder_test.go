// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
	"github.com/csi-tandem/csi-tandem/test/stage"
)

// TestTwoBinders: two processes that bind the same snapshots meet at every step. Nobody gets to see that: no conflict in an
// event or a status, no second content. It is alone, since one of the two binds everything.
func TestTwoBinders(t *testing.T) {
	w := begin(t, setup{snapshotter: []string{"--bind-snapshots=own"}})
	w.must(w.cast.StartSidecar(stage.Snapshotter, "--bind-snapshots=all", "--csi-address="))
	w.noComplaints(w.manySnapshots(30))
}

// TestTwoOfEverything: two whole snapshotters beside one driver, although nobody elected a leader. The driver tells the
// second one that it is busy, and users may get to see that. Nothing is made twice, and no conflict in the API is shown.
func TestTwoOfEverything(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{snapshotter: []string{"--bind-snapshots=own"}})
	w.must(w.cast.StartSidecar(stage.Snapshotter, "--bind-snapshots=own"))
	// Two processes may each send a delete before either has seen the other's.
	w.repeats = 4
	contents := w.manySnapshots(20)
	for _, message := range w.warnings(contents) {
		if strings.Contains(message, "has been modified") || strings.Contains(message, "cannot be fulfilled") {
			t.Error(message)
		}
	}
}

// manySnapshots makes snapshots of one claim, looks at them, and deletes them; the names of the contents are returned.
func (w *world) manySnapshots(count int) map[string]bool {
	w.Helper()
	class := w.snapshotClass("delete") // first: the watches of classes and of snapshots do not wait for each other, and who sees a snapshot before its class says so
	w.disk("data")
	for i := range count {
		w.snapshot(fmt.Sprint("snap", i), "data", class)
	}
	contents := map[string]bool{}
	for i := range count {
		name := fmt.Sprint("snap", i)
		w.await("snapshot "+name+" is ready, and no error is left", func() (bool, string) {
			v, content := w.ready(name)
			contents[content.Name] = true
			return v.Status.Error == nil && content.Status.Error == nil, text(content.Status)
		})
	}
	if stored := w.inventory().Snapshots; len(contents) != count || len(stored) != count {
		w.Errorf("%d contents and %d stored snapshots, want %d", len(contents), len(stored), count)
	}
	for i := range count {
		w.deleteSnapshot(fmt.Sprint("snap", i))
	}
	for i := range count {
		w.snapshotGone(fmt.Sprint("snap", i))
	}
	return contents
}

// warnings are those of everything in the namespace, and of the contents.
func (w *world) warnings(contents map[string]bool) []string {
	w.Helper()
	var all []string
	for _, namespace := range []string{w.ns, metav1.NamespaceDefault} {
		events, err := w.kube.CoreV1().Events(namespace).List(w.ctx, metav1.ListOptions{})
		w.mustNot(err)
		for _, e := range events.Items {
			ours := namespace == w.ns || contents[e.InvolvedObject.Name]
			if ours && e.Type == corev1.EventTypeWarning {
				all = append(all, fmt.Sprintf("%s %s was warned: %s: %s", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message))
			}
		}
	}
	return all
}

// noComplaints: everything went well, so nobody may have been warned of anything.
func (w *world) noComplaints(contents map[string]bool) {
	w.Helper()
	if all := w.warnings(contents); len(all) > 0 {
		w.Errorf("%d warnings, the first is %s", len(all), all[0])
	}
}

// TestBindNone: somebody else binds, and we work on contents alone.
func TestBindNone(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{snapshotter: []string{"--bind-snapshots=none"}})
	volume := w.disk("data")
	w.snapshot("snap", "data", w.snapshotClass("delete"))
	// A content that comes later and is worked on shows that there was time for the snapshot too.
	id, err := w.cast.MakeSnapshot(w.ctx, "by-hand", volume)
	w.mustNot(err)
	name := w.content("given", id, "given")
	w.await("the content is worked on", func() (bool, string) {
		c, err := w.readContent(name)
		if err != nil {
			return unreadable(err)
		}
		return c.Status != nil && ptr.Deref(c.Status.ReadyToUse, false), text(c.Status)
	})
	v, err := w.readSnapshot("snap")
	w.mustNot(err)
	if len(v.Finalizers) > 0 || v.Status != nil || len(w.messages("snap")) > 0 {
		t.Errorf("the snapshot was touched: finalizers %q, status %s, events %q", v.Finalizers, text(v.Status), w.messages("snap"))
	}
	// As a binder would: the content is bound, and later marked and deleted.
	given := w.given("given", name)
	patchContent(w, name, `{"metadata":{"finalizers":["`+contentHeld+`"]},"spec":{"volumeSnapshotRef":{"uid":"`+string(given.UID)+`"}}}`)
	patchContent(w, name, `{"metadata":{"annotations":{"snapshot.storage.kubernetes.io/volumesnapshot-being-deleted":"yes"}}}`)
	w.deleteSnapshot("given")
	w.deleteContent(name)
	w.contentGone(name)
	if stored := w.inventory().Snapshots; len(stored) > 0 {
		t.Errorf("the driver still stores %v", stored)
	}
}

// TestBindAll is alone: a process that binds everything would take part in what other tests watch closely. It also tells
// those of their errors that nobody else could.
func TestBindAll(t *testing.T) {
	w := begin(t, setup{name: "bindall", snapshotter: []string{"--bind-snapshots=all"}})
	w.disk("data")
	w.snapshot("snap", "data", w.snapshotClass("delete"))
	w.ready("snap")
	// Neither class nor claim say whose it is.
	w.snapshot("nobodys", "missing", w.ns+"-missing")
	w.failed("nobodys", "missing")

	other := begin(t, setup{name: "bindother", snapshotter: []string{"--bind-snapshots=none"}})
	other.disk("data")
	other.snapshot("snap", "data", other.snapshotClass("delete"))
	other.ready("snap")
}

// TestBindAllWithoutADriver: the same program serves a whole cluster, as a snapshot-controller does.
func TestBindAllWithoutADriver(t *testing.T) {
	w := begin(t, setup{snapshotter: []string{"--bind-snapshots=none"}})
	binder, err := w.cast.StartSidecar(stage.Snapshotter, "--bind-snapshots=all", "--csi-address=")
	w.mustNot(err)
	w.disk("data")
	w.snapshot("snap", "data", w.snapshotClass("delete"))
	w.ready("snap")
	w.deleteSnapshot("snap")
	w.snapshotGone("snap")
	if log := binder.LogTail(1000); strings.Contains(log, "panic") {
		t.Error(log)
	}
}

// TestLeaders: of two with leader election one works; when it is asked to end it gives the lease back, and the other goes
// on at once.
func TestLeaders(t *testing.T) {
	t.Parallel()
	flags := []string{"--leader-election", "--leader-election-namespace=" + stage.Namespace}
	w := begin(t, setup{provisioner: flags, snapshotter: flags})
	w.claim("first", w.class("class"))
	w.bound("first")
	w.snapshot("first", "first", w.snapshotClass("delete"))
	w.ready("first")
	w.must(w.cast.StartSidecar(stage.Provisioner, flags...))
	w.must(w.cast.StartSidecar(stage.Snapshotter, flags...))
	for _, p := range []*stage.Process{w.provisioner, w.snapshotter} {
		if state := p.Terminate(); state.ExitCode() < 0 {
			t.Errorf("the %s had to be killed: %v", p.Name, state)
		}
	}
	for _, lease := range w.leases() {
		w.await("lease "+lease+" has another holder", func() (bool, string) {
			got, err := w.kube.CoordinationV1().Leases(stage.Namespace).Get(w.ctx, lease, metav1.GetOptions{})
			if err != nil {
				return unreadable(err)
			}
			return ptr.Deref(got.Spec.LeaseTransitions, 0) > 0 && ptr.Deref(got.Spec.HolderIdentity, "") != "", text(got.Spec)
		})
	}
	w.claim("second", w.ns+"-class")
	w.bound("second")
	w.snapshot("second", "second", w.ns+"-delete")
	w.ready("second")
}

// leases are named after the driver: other programs find them by name (T105, S94).
func (w *world) leases() []string {
	driver := strings.ReplaceAll(w.driver, ".", "-")
	return []string{driver, "external-snapshotter-leader-" + driver}
}

// TestDriverRestarts: a driver that goes away and comes back is waited for; nobody ends because of it.
func TestDriverRestarts(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{})
	w.disk("data")
	w.cast.Driver.Kill()
	class := w.snapshotClass("delete")
	w.claim("later", w.class("class"))
	w.snapshot("snap", "data", class)
	w.mustNot(w.cast.Driver.Start())
	w.bound("later")
	w.ready("snap")
	w.rule(w.script.CommitThenCrash(w.ctx, control.On("CreateVolume")))
	w.claim("crash", w.ns+"-class")
	for w.cast.Driver.IsRunning() {
		time.Sleep(look)
	}
	w.cast.Driver.Forgive()
	w.mustNot(w.cast.Driver.Start())
	w.bound("crash")
}
