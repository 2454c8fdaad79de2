// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
	"github.com/csi-tandem/csi-tandem/test/controlplane"
	"github.com/csi-tandem/csi-tandem/test/stage"
)

// met counts in the table of requests those that met another writer, such as the controllers, which write a claim's conditions. What has to
// be done again for that is read again: a volume and a snapshot.
const met = "met another writer"

// audited counts what the snapshotter asked of the API server about some objects, as the server wrote it down: by verb and
// resource, answers 409 apart. Events are counted by the object that they are about.
func (w *world) audited(names ...string) map[string]int {
	w.Helper()
	counts := map[string]int{}
	_, err := controlplane.ReadAudit(w.stage.Cluster.AuditLog(), 0, func(a controlplane.AuditLine) {
		if a.Object.Resource == "" || a.User.Username != "system:serviceaccount:"+stage.Namespace+":csi-snapshotter" ||
			!slices.Contains([]string{"", w.ns}, a.Object.Namespace) && (a.Object.Resource != "events" || a.Object.Namespace != metav1.NamespaceDefault) {
			return // of another test; events about what is in no namespace are in that which is the default
		}
		about, _, _ := strings.Cut(a.Object.Name, ".")
		if a.Object.Resource == "events" && slices.Contains(names, about) || slices.Contains(names, a.Object.Name) {
			what := a.Verb + " " + a.Object.Resource
			switch {
			case a.Response.Code == http.StatusConflict:
				what = met
			case a.Object.Subresource != "":
				what += "/" + a.Object.Subresource
			}
			counts[what]++
		}
	})
	w.mustNot(err)
	return counts
}

// cost splits counts into writes, reads and events.
func cost(counts map[string]int) (writes, reads, events int) {
	for what, n := range counts {
		switch {
		case what == met:
		case strings.HasSuffix(what, " events"):
			events += n
		case strings.HasPrefix(what, "get "):
			reads += n
		default:
			writes += n
		}
	}
	return writes, reads, events
}

func difference(after, before map[string]int) map[string]int {
	d := map[string]int{}
	for what, n := range after {
		if n > before[what] {
			d[what] = n - before[what]
		}
	}
	return d
}

// auditedUntil waits until the server has written down so much; it writes a moment after it has answered.
func (w *world) auditedUntil(what string, names ...string) map[string]int {
	w.Helper()
	var counts map[string]int
	w.await("the audit log has "+what, func() (bool, string) {
		counts = w.audited(names...)
		return counts[what] > 0, text(counts)
	})
	time.Sleep(time.Second) // what should not come may still be under way
	return w.audited(names...)
}

// TestSnapshotBudget: what a life costs on the real API server, as that writes it down. A driver that takes more than a
// second, as on a busy machine, costs one write and one event more; one of the lives must have had a quick one.
func TestSnapshotBudget(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{})
	w.disk("data")
	claim, err := w.readClaim("data")
	w.mustNot(err)
	class := w.snapshotClass("delete")
	var quick bool
	for _, name := range []string{"one", "two", "three"} {
		before := w.audited("data", claim.Spec.VolumeName)
		snap := w.snapshot(name, "data", class)
		content := "snapcontent-" + string(snap.UID)
		about := []string{name, content, "data", claim.Spec.VolumeName}
		w.ready(name)
		w.await("the claim is let go, and the content unmarked", func() (bool, string) {
			claim, err := w.readClaim("data")
			if err != nil {
				return unreadable(err)
			}
			c, err := w.readContent(content)
			if err != nil {
				return unreadable(err)
			}
			return !slices.Contains(claim.Finalizers, claimHeld) && c.Annotations[beingMade] == "", text(c.Annotations)
		})
		made := difference(w.auditedUntil("create events", about...), before)
		writes, reads, events := cost(made)
		if writes > 8 || events > 2 || reads > 1+2*made[met] {
			t.Errorf("create to ready of %s: %d writes, %d reads, %d events: %v", name, writes, reads, events, made)
		}
		quick = quick || writes <= 7 && events == 1

		before = w.audited(about...)
		w.deleteSnapshot(name)
		w.snapshotGone(name)
		w.contentGone(content)
		gone := difference(w.auditedUntil("delete volumesnapshotcontents", about...), before)
		if writes, reads, events := cost(gone); writes > 3 || reads > 1+2*gone[met] || events > 0 {
			t.Errorf("delete to gone: %d writes, %d reads, %d events: %v", writes, reads, events, gone)
		}
	}
	if !quick {
		t.Error("no life had at most 7 writes and one event")
	}
}

// TestSnapshotFailureBudget (S59, S64): a failing create writes once for each error and not for each try; a poll writes nothing.
func TestSnapshotFailureBudget(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{snapshotter: []string{"--retry-interval-start=100ms"}})
	w.disk("data")
	class := w.snapshotClass("delete")
	w.rule(w.script.Fail(w.ctx, control.On("CreateSnapshot").Times(5), codes.FailedPrecondition))
	failing := w.snapshot("failing", "data", class)
	w.ready("failing")
	content := "snapcontent-" + string(failing.UID)
	counts := w.auditedUntil("patch volumesnapshotcontents/status", "failing", content)
	// One for the error and one for the success on each object; the snapshot may have had one for its content's name.
	if own, status := counts["patch volumesnapshotcontents/status"], counts["patch volumesnapshots/status"]; own != 2 || status > 3 {
		t.Errorf("five failures: %v", counts)
	}
	if calls := w.calls("CreateSnapshot"); len(calls) < 6 {
		t.Errorf("CreateSnapshot was called %d times", len(calls))
	}
	w.rule(w.script.ReadyAfterCalls(w.ctx, "", 4))
	slow := w.snapshot("slow", "data", class)
	w.ready("slow")
	counts = w.auditedUntil("patch volumesnapshotcontents/status", "slow", "snapcontent-"+string(slow.UID))
	if own, status := counts["patch volumesnapshotcontents/status"], counts["patch volumesnapshots/status"]; own != 2 || status > 3 {
		t.Errorf("cut and ready, with polls between: %v", counts)
	}
	if v, err := w.readSnapshot("slow"); err != nil || !ptr.Deref(v.Status.ReadyToUse, false) {
		t.Errorf("%v %v", v, err)
	}
}
