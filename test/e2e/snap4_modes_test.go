// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/test/stage"
)

// These tests are alone: a process that binds everything would take part in what other tests watch closely.

// kubeconfigOf is the flag that a sidecar was started with.
func kubeconfigOf(p *stage.Process) string {
	return p.Args[slices.IndexFunc(p.Args, func(arg string) bool { return strings.HasPrefix(arg, "--kubeconfig=") })]
}

// TestCalledSnapshotController (S100): the program called as the cluster's binder, with the flags of that one's manifests, binds
// for everybody without a driver. The sidecar beside it binds nothing, and writes nothing that is not its own.
func TestCalledSnapshotController(t *testing.T) {
	w := begin(t, setup{snapshotter: []string{"--bind-snapshots=none"}})
	link := filepath.Join(w.cast.Dir(), "snapshot-controller")
	w.mustNot(os.Symlink(w.snapshotter.Path, link))
	binder := &stage.Process{
		Name: "snapshot-controller", Path: link, Log: filepath.Join(w.cast.Dir(), "snapshot-controller.log"),
		Args: []string{kubeconfigOf(w.snapshotter), "--v=2", "--leader-election=true", "--leader-election-namespace=" + stage.Namespace,
			"--retry-crd-interval-max=10s", "--feature-gates=CSIVolumeGroupSnapshot=false"},
	}
	w.mustNot(binder.Start())
	t.Cleanup(func() { binder.Terminate() })
	volume := w.disk("data")
	snap := w.snapshot("snap", "data", w.snapshotClass("delete"))
	_, content := w.ready("snap")
	if managers := managersOf(content.ManagedFields); !slices.Contains(managers, "snapshotter") {
		t.Errorf("written by %v", managers)
	}
	id, err := w.cast.MakeSnapshot(w.ctx, "by-hand", volume)
	w.mustNot(err)
	given := w.content("given", id, "given")
	w.given("given", given)
	w.ready("given")
	w.deleteSnapshot("given")
	w.snapshotGone("given")
	w.contentGone(given)
	w.deleteSnapshot("snap")
	w.snapshotGone("snap")
	w.contentGone("snapcontent-" + string(snap.UID))
	if ends := binder.Ends(); len(ends) > 0 {
		t.Errorf("%q: %s", ends, binder.LogTail(5))
	}
	if state := binder.Terminate(); state.ExitCode() != 0 {
		t.Errorf("it ended with %v: %s", state, binder.LogTail(5))
	}
}

func managersOf(fields []metav1.ManagedFieldsEntry) (managers []string) {
	for _, f := range fields {
		managers = append(managers, f.Manager)
	}
	return managers
}

// TestStandsBackForAnotherBinder: with a fresh lease of another one nothing is bound by us, and that is said once, in the log, in
// an event and by a metric. When the lease is no longer renewed we take part again.
func TestStandsBackForAnotherBinder(t *testing.T) {
	address := freeAddress(t)
	w := begin(t, setup{withoutSnapshotter: true})
	foreign, err := w.cast.StartSidecar(stage.Snapshotter, "--bind-snapshots=all", "--csi-address=", "--leader-election",
		"--leader-election-namespace="+stage.Namespace, "--leader-election-lease-duration=3s", "--leader-election-renew-deadline=2s",
		"--leader-election-retry-period=500ms")
	w.mustNot(err)
	w.await("the other binder leads", func() (bool, string) {
		lease, err := w.kube.CoordinationV1().Leases(stage.Namespace).Get(w.ctx, "snapshot-controller-leader", metav1.GetOptions{})
		if err != nil {
			return unreadable(err)
		}
		return ptr.Deref(lease.Spec.HolderIdentity, "") != "", text(lease.Spec)
	})
	ours, err := w.cast.StartSidecar(stage.Snapshotter, "--http-endpoint="+address, "--leader-election", "--leader-election-namespace="+stage.Namespace)
	w.mustNot(err)
	const aside = "csi_tandem_snapshot_binding_aside "
	w.await("we stand back", func() (bool, string) {
		page := w.page(address, "/metrics")
		return strings.Contains(page, aside+"1"), "the metric is not 1"
	})
	w.disk("data")
	class := w.snapshotClass("delete")
	w.snapshot("theirs", "data", class)
	w.ready("theirs")
	if lines := w.logged(ours, "Leaving the binding of snapshots to others"); lines != 1 {
		t.Errorf("said %d times", lines)
	}
	w.await("an event says so", func() (bool, string) {
		events, err := w.kube.CoreV1().Events(stage.Namespace).List(w.ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=snapshot-controller-leader"})
		if err != nil {
			return unreadable(err)
		}
		for _, e := range events.Items {
			if e.Reason == "SnapshotBindingLeftToOthers" {
				return true, ""
			}
		}
		return false, text(events.Items)
	})
	foreign.Kill()
	w.snapshot("ours", "data", class)
	w.ready("ours")
	if page := w.page(address, "/metrics"); !strings.Contains(page, aside+"0") {
		t.Error("we bind, and the metric says that we do not")
	}
	w.deleteSnapshot("theirs")
	w.snapshotGone("theirs")
}

// logged counts the lines of a log with some words.
func (w *world) logged(p *stage.Process, words string) int {
	w.Helper()
	log, err := os.ReadFile(p.Log)
	w.mustNot(err)
	return strings.Count(string(log), words)
}
