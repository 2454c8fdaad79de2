// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
	"github.com/csi-tandem/csi-tandem/test/stage"
)

// view reads a page of a process.
func (w *world) view(address, path string) string {
	w.Helper()
	answer, err := http.Get("http://" + address + path)
	w.mustNot(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	w.mustNot(err)
	if answer.StatusCode != http.StatusOK {
		w.Fatalf("%s answers %s: %s", path, answer.Status, text)
	}
	return string(text)
}

func (w *world) pageShows(address string, words ...string) {
	w.Helper()
	w.await("the page shows "+strings.Join(words, ", "), func() (bool, string) {
		text := w.view(address, "/")
		return containsAll(text, words), text
	})
}

// browse looks at the pages with a browser, as far as there is one.
func (w *world) browse(provisioner, snapshotter string) {
	w.Helper()
	path := findBrowser()
	if path == "" {
		w.Log("the pages are not looked at in a browser: there is neither chromium nor google-chrome on this machine")
		return
	}
	b := openBrowser(w.T, path)
	b.checkPage("provisioner", provisioner, "provisioner of "+w.driver, w.ns+"/slow", "working for", "failed once", "room for 5 GiB", "CreateVolume", "Last errors")
	b.checkPage("snapshotter", snapshotter, "snapshotter of "+w.driver, "VolumeSnapshotContent", "working for", "Asks the driver for a snapshot")
}

// TestPages: what both processes show while the driver hangs, fails and is fine again; it would catch a page that shows a secret, and
// one that still shows what is over.
func TestPages(t *testing.T) {
	t.Parallel()
	const canary = "canary-of-the-page"
	provisioner, snapshotter := freeAddress(t), freeAddress(t)
	w := begin(t, setup{
		provisioner: []string{"--http-endpoint=" + provisioner, "--retry-interval-start=1m", "--enable-capacity", noPoll},
		snapshotter: []string{"--http-endpoint=" + snapshotter},
		cast: func(w *world, roles *stage.Roles) {
			roles.Capacity, roles.Env = true, []string{"NAMESPACE=" + stage.Namespace, "POD_NAME=" + w.installation()}
			roles.Flags = append(roles.Flags, "--pools="+poolsFile(t, map[string]string{"z1": "100Gi", "z2": "5Gi"}))
		},
	})
	w.class("late", waiting)
	w.secret("token", map[string]string{"password": canary})
	w.disk("data")
	withSecret := w.class("secret", parameters(map[string]string{
		"csi.storage.k8s.io/provisioner-secret-name": "token", "csi.storage.k8s.io/provisioner-secret-namespace": w.ns,
	}))
	hang := w.rule(w.script.Hang(w.ctx, control.On("CreateVolume").Times(1), 0))
	w.claim("slow", withSecret)
	w.awaitCalls("CreateVolume", 2)
	full := w.rule(w.script.Fail(w.ctx, control.On("CreateVolume"), codes.ResourceExhausted))
	w.claim("big", withSecret)
	w.pageShows(provisioner, "<h1>provisioner of "+w.driver, w.ns+"/slow", "working for", w.ns+"/big", "failing, next look in", "Last errors", "ResourceExhausted",
		"z1", "room for", "z2</b>: worker-2", "room for 5 GiB", "Calls to the driver")
	metrics := w.scrape(provisioner)
	if n := metrics.count("csi_tandem_pending_objects", map[string]string{"kind": "PersistentVolumeClaim", "queue": "claims", "state": "working"}); n != 1 {
		t.Errorf("%v claims are worked on: %v", n, metrics["csi_tandem_pending_objects"])
	}
	if len(metrics["csi_tandem_oldest_pending_seconds"].GetMetric()) == 0 {
		t.Error("nothing is pending in the metrics")
	}
	if n := metrics.count("csi_tandem_api_writes_total", map[string]string{"verb": "create", "resource": "persistentvolumes", "code": "201"}); n != 1 {
		t.Errorf("%v volumes were written: %v", n, metrics["csi_tandem_api_writes_total"])
	}

	stuck := w.rule(w.script.Hang(w.ctx, control.On("CreateSnapshot"), 0))
	w.snapshot("snap", "data", w.snapshotClass("delete"))
	w.awaitCalls("CreateSnapshot", 1)
	w.pageShows(snapshotter, "<h1>snapshotter of "+w.driver, "VolumeSnapshotContent", "working for", "Asks the driver for a snapshot")
	w.browse(provisioner, snapshotter)
	for _, address := range []string{provisioner, snapshotter} {
		for _, path := range []string{"/", "/statusz", "/flagz", "/metrics", "/readyz"} {
			text := w.view(address, path)
			if strings.Contains(text, canary) {
				t.Errorf("%s shows a secret", path)
			}
			if dir := os.Getenv("CSI_TANDEM_PAGES"); dir != "" && path == "/" {
				name := filepath.Join(dir, map[string]string{provisioner: "provisioner.html", snapshotter: "snapshotter.html"}[address])
				w.mustNot(os.WriteFile(name, []byte(text), 0o600))
			}
		}
	}
	if text := w.view(provisioner, "/flagz"); !strings.Contains(text, "http-endpoint="+provisioner) || !strings.Contains(w.view(provisioner, "/statusz"), "provisioner statusz") {
		t.Errorf("the flags are %s", text)
	}
	w.release(hang)
	w.release(full)
	w.release(stuck)
	w.bound("slow")
	w.ready("snap")
	w.deleteClaim("big")
	w.await("nothing is pending on the page", func() (bool, string) {
		text := w.view(provisioner, "/")
		work, _, _ := strings.Cut(text, "Last errors")
		return !strings.Contains(work, w.ns+"/slow") && !strings.Contains(work, w.ns+"/big"), text
	})
}
