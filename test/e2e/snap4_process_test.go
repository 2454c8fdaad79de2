// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/base64"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
	"github.com/csi-tandem/csi-tandem/test/stage"
)

// ended waits until a process has ended by itself, and tells how.
func (w *world) ended(p *stage.Process) string {
	w.Helper()
	for deadline := time.Now().Add(patience); p.IsRunning(); time.Sleep(look) {
		if time.Now().After(deadline) {
			w.Fatalf("the %s did not end", p.Name)
		}
	}
	ends := p.Ends()
	p.Forgive()
	return strings.Join(ends, "\n")
}

// TestDriverWithoutSnapshots (S92): a driver that cannot snapshot is no reason to try again for ever; one that is not there yet
// is waited for.
func TestDriverWithoutSnapshots(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{withoutSnapshotter: true, driver: []string{"--capabilities=-CREATE_DELETE_SNAPSHOT"}})
	w.cast.Driver.Kill()
	p, err := w.cast.StartSidecar(stage.Snapshotter)
	w.mustNot(err)
	time.Sleep(3 * time.Second)
	if !p.IsRunning() {
		t.Fatalf("it did not wait for its driver: %s", p.LogTail(3))
	}
	w.mustNot(w.cast.Driver.Start())
	if how := w.ended(p); !strings.Contains(how, "exit status 1") || !strings.Contains(p.LogTail(3), "does not have the capability CREATE_DELETE_SNAPSHOT") {
		t.Errorf("%s: %s", how, p.LogTail(3))
	}
}

// TestSnapshotterLosesItsDriver (S93): the loss is told at once, the process stays, and goes on when the driver is back.
func TestSnapshotterLosesItsDriver(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	w := begin(t, setup{snapshotter: []string{"--http-endpoint=" + address, "--retry-interval-start=200ms"}})
	w.disk("data")
	class := w.snapshotClass("delete")
	w.snapshot("before", "data", class)
	w.ready("before")
	w.cast.Driver.Kill()
	w.await("the loss of the driver is told", func() (bool, string) {
		page := w.page(address, "/readyz")
		return strings.Contains(page, "not ok: driver"), page
	})
	if n := w.logged(w.snapshotter, "Lost the connection to the driver"); n != 1 {
		t.Errorf("logged %d times", n)
	}
	w.snapshot("meanwhile", "data", class)
	w.deleteSnapshot("before")
	w.mustNot(w.cast.Driver.Start())
	w.ready("meanwhile")
	w.snapshotGone("before")
}

// TestSignals (SW-25): both signals end the process in order and give the lease back. A program that stops working and goes on to
// renew its lease, or dies with it, keeps everybody waiting.
func TestSignals(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{withoutSnapshotter: true})
	p, err := w.cast.StartSidecar(stage.Snapshotter, "--leader-election", "--leader-election-namespace="+stage.Namespace, "--bind-snapshots=none")
	w.mustNot(err)
	name := w.leases()[1]
	holder := func() string {
		lease, err := w.kube.CoordinationV1().Leases(stage.Namespace).Get(w.ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		return ptr.Deref(lease.Spec.HolderIdentity, "")
	}
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		w.mustNot(p.Start())
		w.await("it leads", func() (bool, string) { h := holder(); return h != "" && !strings.Contains(h, "not found"), h })
		w.mustNot(syscall.Kill(p.ID(), signal))
		if how := w.ended(p); !strings.Contains(how, "exit status 0") {
			t.Errorf("%v: %s", signal, how)
		}
		if h := holder(); h != "" {
			t.Errorf("%v: the lease is held by %s", signal, h)
		}
	}
	w.mustNot(p.Start())
}

// TestSnapshotSecretsStaySecret (B053): with everything logged, calls that fail and calls that succeed, nobody gets to see a secret:
// not in logs, events, objects or metrics.
func TestSnapshotSecretsStaySecret(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	w := begin(t, setup{driver: []string{"--require-secrets=token=" + canary, "--require-secrets-on=CreateSnapshot,DeleteSnapshot,ListSnapshots,GetSnapshot"},
		snapshotter: []string{"-v=10", "--http-endpoint=" + address, "--retry-interval-start=100ms"}})
	w.secret("token", map[string]string{"token": canary})
	class := w.snapshotClass("delete", func(c *snapv1.VolumeSnapshotClass) {
		c.Parameters = map[string]string{
			"csi.storage.k8s.io/snapshotter-secret-name": "token", "csi.storage.k8s.io/snapshotter-secret-namespace": w.ns,
			"csi.storage.k8s.io/snapshotter-list-secret-name": "token", "csi.storage.k8s.io/snapshotter-list-secret-namespace": w.ns,
		}
	})
	w.disk("data")
	for _, method := range []string{"CreateSnapshot", "DeleteSnapshot", "GetSnapshot", "ListSnapshots"} {
		w.rule(w.script.Fail(w.ctx, control.On(method).Times(2), codes.FailedPrecondition))
	}
	w.rule(w.script.ReadyAfterCalls(w.ctx, "", 3))
	w.snapshot("snap", "data", class)
	v, content := w.ready("snap")
	metrics := w.page(address, "/metrics")
	w.deleteSnapshot("snap")
	w.snapshotGone("snap")
	if log, err := os.ReadFile(w.snapshotter.Log); err != nil || !strings.Contains(string(log), "CreateSnapshot") {
		t.Errorf("nothing was logged: %v", err)
	}
	w.checkCanary()
	for where, said := range map[string]string{"the objects": text(v) + text(content), "the metrics": metrics} {
		for _, form := range []string{canary, strings.Trim(text(canary), `"`), base64.StdEncoding.EncodeToString([]byte(canary))} {
			if strings.Contains(said, form) {
				t.Errorf("the secret is in %s", where)
			}
		}
	}
}
