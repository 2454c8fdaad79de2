// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
	"github.com/csi-tandem/csi-tandem/test/proxy"
)

// TestExitCodes (T104): scripts and operators know the sidecar by them.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{withoutSnapshotter: true, withoutTopology: true})
	socket := filepath.Join(t.TempDir(), "nobody.sock")
	for _, row := range []struct {
		args string
		code int
		says string
	}{
		{"--help", 0, "--csi-address"},
		{"--version", 0, "provisioner"},
		{"--nonsense", 2, "--nonsense"},
		{"--timeout=soon", 2, "--timeout"},
		{"--leader-election-labels=a=b", 2, "--leader-election-labels"},
		{"--feature-gates=Nonsense=true", 255, "Nonsense"},
		{"--feature-gates=Topology=perhaps", 255, "Topology"},
		{"--logging-format=nonsense", 1, "logging"},
		{"--http-endpoint=127.0.0.1:0 --metrics-address=127.0.0.1:0", 1, "metrics-address"},
		{"--csi-address=tcp://127.0.0.1:1", 1, "--csi-address"},
		{"--kubeconfig=/nobody/has/this --csi-address=" + socket, 255, "kubeconfig"},
	} {
		ctx, cancel := context.WithTimeout(w.ctx, 20*time.Second)
		said, err := exec.CommandContext(ctx, w.provisioner.Path, strings.Fields(row.args)...).CombinedOutput()
		cancel()
		code := 0
		var exit *exec.ExitError
		switch {
		case errors.As(err, &exit):
			code = exit.ExitCode()
		case err != nil:
			t.Fatal(err)
		}
		if code != row.code || !strings.Contains(string(said), row.says) {
			t.Errorf("%s: exit %d, want %d, with %q in\n%s", row.args, code, row.code, row.says, said)
		}
	}
}

// TestDriverComesAndGoes (T104): a driver that is not ready, gone, or back again is waited for, and the process stays.
func TestDriverComesAndGoes(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	w := begin(t, setup{withoutSnapshotter: true, withoutTopology: true, provisioner: []string{"--http-endpoint=" + address, "--retry-interval-start=200ms"}})
	class := w.class("class")
	w.claim("before", class)
	w.bound("before")
	w.cast.Driver.Kill()
	w.await("the loss of the driver is told", func() (bool, string) {
		page := w.page(address, "/readyz")
		return strings.Contains(page, "not ok: driver"), page
	})
	w.claim("after", class)
	w.mustNot(w.cast.Driver.Start())
	w.bound("after")
	w.await("the return of the driver is told", func() (bool, string) {
		page := w.page(address, "/readyz")
		return strings.Contains(page, "ok: driver\n") && !strings.Contains(page, "not ok"), page
	})
}

// TestWorkerIsFreeAgain (T66): a driver that never answers costs the deadline of a call, not a worker.
func TestWorkerIsFreeAgain(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{withoutSnapshotter: true, withoutTopology: true, provisioner: []string{"--timeout=1s", "--worker-threads=1"}})
	class := w.class("class")
	stuck := w.claim("stuck", class)
	rule := w.rule(w.script.Hang(w.ctx, control.On("CreateVolume").About(string(stuck.UID)), 0))
	w.told("stuck", "Warning ProvisioningFailed", "code = DeadlineExceeded")
	w.claim("next", class)
	w.bound("next")
	w.release(rule)
	w.bound("stuck")
	w.repeats = 5
}

// TestCachesThatDoNotFill (PW-25): a right that is missing is told by name, health says that there is no work, the lease stays free
// for one that could work, and the work begins when the right is there. Catches one that waits in silence while it leads.
func TestCachesThatDoNotFill(t *testing.T) {
	t.Parallel()
	api, through := behind(t)
	refused := api.Fail(proxy.Match{Verb: "list", Resource: "storageclasses"}, proxy.NotAllowed, proxy.Always)
	watched := api.Fail(proxy.Match{Verb: "watch", Resource: "storageclasses"}, proxy.NotAllowed, proxy.Always)
	address := freeAddress(t)
	w := begin(t, setup{withoutSnapshotter: true, withoutTopology: true, provisioner: []string{through, "--http-endpoint=" + address, "--leader-election", "--leader-election-namespace=csi-tandem"}})
	w.claim("data", w.class("class"))
	w.await("health names what is missing", func() (bool, string) {
		page := w.page(address, "/readyz")
		return strings.Contains(page, "not ok: caches") && strings.Contains(page, "storageclasses"), page
	})
	if n := api.Count(proxy.Match{Verb: "create", Resource: "leases"}); n != 0 {
		t.Error("it leads although it cannot work")
	}
	refused.Release()
	watched.Release()
	w.bound("data")
}
