// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
	"github.com/csi-tandem/csi-tandem/test/proxy"
	"github.com/csi-tandem/csi-tandem/test/stage"
)

// behind is a proxy before the API server, and the flag that makes the provisioner speak through it.
func behind(t *testing.T) (api *proxy.API, flag string) {
	t.Helper()
	return behindAs(t, stage.Provisioner)
}

func behindAs(t *testing.T, program stage.Program) (api *proxy.API, flag string) {
	t.Helper()
	s := theStage(t)
	api, err := proxy.NewAPI(s.Cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := api.Close(); err != nil {
			t.Error(err)
		}
	})
	account, err := s.Cluster.ServiceAccountConfig(t.Context(), stage.Namespace, "csi-"+string(program))
	if err != nil {
		t.Fatal(err)
	}
	file, err := api.Kubeconfig(t.TempDir(), account.BearerToken)
	if err != nil {
		t.Fatal(err)
	}
	return api, "--kubeconfig=" + file
}

// TestWritesThatTimeOut (B083, T57, PW-13): of the writes every fourth answers 504, and every second of those was done all the
// same. Each claim gets its one volume. Catches one that makes a volume anew when saving it fails, and one that gives up.
func TestWritesThatTimeOut(t *testing.T) {
	t.Parallel()
	api, through := behind(t)
	var before, after atomic.Int64
	every := func(count *atomic.Int64, n int64) func(proxy.Request) bool {
		return func(proxy.Request) bool { return count.Add(1)%n == 0 }
	}
	lost := api.Fail(proxy.Match{Verb: proxy.AnyWrite, Only: every(&before, 8)}, proxy.TimedOut, proxy.Always)
	done := api.FailAfter(proxy.Match{Verb: proxy.AnyWrite, Only: every(&after, 8)}, proxy.TimedOut, proxy.Always)
	w := begin(t, setup{withoutSnapshotter: true, withoutTopology: true, provisioner: []string{through, "--retry-interval-start=100ms"}})
	class := w.class("class")
	const claims = 24
	for i := range claims {
		w.claim(fmt.Sprint("data-", i), class)
	}
	names := map[string]bool{}
	for i := range claims {
		names[w.bound(fmt.Sprint("data-", i)).Spec.CSI.VolumeHandle] = true
	}
	if stored := w.inventory().Volumes; len(names) != claims || len(stored) != claims {
		t.Errorf("%d claims have %d volumes, and the driver stores %d", claims, len(names), len(stored))
	}
	if lost.Hits() == 0 || done.Hits() == 0 {
		t.Errorf("%d writes were refused and %d lost: there was no fault", lost.Hits(), done.Hits())
	}
	if calls := w.calls("DeleteVolume"); len(calls) > 0 {
		t.Errorf("a volume was deleted: %s", calls[0].Request)
	}
	for i := range claims {
		w.deleteClaim(fmt.Sprint("data-", i))
	}
	w.await("the driver stores nothing any more", func() (bool, string) { return len(w.inventory().Volumes) == 0, text(w.inventory()) })
	w.repeats = 4
}

// TestSecretsNeverShow (B053, T29): the secret of a class is read when it is needed, and shown nowhere, whether calls fail or not
// and however much is logged.
func TestSecretsNeverShow(t *testing.T) {
	t.Parallel()
	const hidden = `S3CR3T-"CANARY"`
	address := freeAddress(t)
	w := begin(t, setup{
		withoutSnapshotter: true, driver: []string{"--require-secrets=token=" + hidden},
		provisioner: []string{"-v=10", "--http-endpoint=" + address, "--retry-interval-start=200ms"},
	})
	w.secret("token", map[string]string{"token": hidden})
	class := w.class("class", parameters(map[string]string{
		"csi.storage.k8s.io/provisioner-secret-name": "token", "csi.storage.k8s.io/provisioner-secret-namespace": w.ns,
	}))
	for _, code := range []codes.Code{codes.Internal, codes.InvalidArgument, codes.Unavailable} {
		name := strings.ToLower(code.String())
		rule := w.rule(w.script.Fail(w.ctx, control.On("CreateVolume"), code))
		w.claim(name, class)
		w.told(name, "Warning ProvisioningFailed", "code = "+code.String())
		w.release(rule)
		w.deleteClaim(name)
	}
	rule := w.rule(w.script.Fail(w.ctx, control.On("DeleteVolume").Times(1), codes.Internal))
	w.claim("data", class)
	pv := w.bound("data")
	w.deleteClaim("data")
	w.volumeGone(pv.Name)
	w.release(rule)

	written := map[string]string{"the metrics": w.page(address, "/metrics"), "readiness": w.page(address, "/readyz"), "the volume": text(pv)}
	log, err := os.ReadFile(w.provisioner.Log)
	w.mustNot(err)
	written["the log"] = string(log)
	for _, namespace := range []string{w.ns, metav1.NamespaceDefault} {
		events, err := w.kube.CoreV1().Events(namespace).List(w.ctx, metav1.ListOptions{})
		w.mustNot(err)
		written["the events of "+namespace] = text(events)
	}
	records, err := w.kube.CoreV1().ConfigMaps(stage.Namespace).List(w.ctx, metav1.ListOptions{})
	w.mustNot(err)
	written["the record of open attempts"] = text(records)
	for where, sign := range map[string]string{"the log": "/csi.v1.Controller/CreateVolume", "the metrics": "csi_sidecar_operations_seconds", "readiness": "ok: driver", "the record of open attempts": w.driver + "-attempts-0"} {
		if !strings.Contains(written[where], sign) {
			t.Errorf("there is no %q in %s, so that nothing was looked at", sign, where)
		}
	}
	for where, said := range written {
		for _, form := range []string{hidden, base64.StdEncoding.EncodeToString([]byte(hidden)), strings.Trim(text(hidden), `"`)} {
			if strings.Contains(said, form) {
				t.Errorf("the secret is in %s", where)
			}
		}
	}
}

// page is what the sidecar serves under a path; while it does not serve yet, the error.
func (w *world) page(address, path string) string {
	w.Helper()
	answer, err := http.Get("http://" + address + path)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	w.mustNot(err)
	return string(content)
}
