// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
)

type deciding struct{}

// busy is a process with one room that has something to show in every state.
func busy(t *testing.T) *being {
	t.Helper()
	b := conceive(t, func(p *Program) {
		p.Options.HTTP = HTTPOptions{Endpoint: "x", MetricsPath: "/metrics", Pages: true}
		p.Say = func(any) string { return "Asks the driver for a <volume>." }
	})
	now := b.clock.Now()
	status := func() reconcile.Status {
		return reconcile.Status{
			Queue: "claims",
			Work: []reconcile.Work{
				{Key: reconcile.Key{Namespace: "team-a", Name: "<script>alert(1)</script>", UID: "hidden-uid"}, Since: now.Add(-3 * time.Minute), Begun: now.Add(-5 * time.Second), Step: deciding{}},
				{Key: reconcile.Key{Name: "failing-one"}, Since: now.Add(-time.Minute), Next: now.Add(90*time.Second + 900*time.Millisecond), Failures: 4, Step: deciding{}, Why: "no & room"},
				{Key: reconcile.Key{Name: "waiting-one"}, Since: now.Add(-time.Minute), Why: "its node"},
				{Key: reconcile.Key{Name: "queued-one"}, Since: now},
			},
			Failures: []reconcile.Failure{{Key: reconcile.Key{Namespace: "team-a", Name: "old"}, At: now.Add(-2 * time.Hour), Step: "Create", Why: "gone wrong"}},
		}
	}
	index := topology.NewIndex()
	index.SetNode("n1", map[string]string{"zone": "z1"})
	index.SetDriverKeys("n1", []string{"zone"})
	b.show(&Env{DriverName: "d.example", Node: "n7", index: index}, []Runnable{{Name: "claims", Kind: "PersistentVolumeClaim", Status: status}, {Name: "silent"}}, b.meters.rooms.Load())
	b.shown.Load().works("claims")
	return b
}

// TestPage: what an object is called comes from users, and must never be markup.
func TestPage(t *testing.T) {
	b := busy(t)
	b.health.set(checkDriver, "")
	b.health.set(checkCaches, "the <b> is not filled")
	code, text := b.fetch("/")
	if code != http.StatusOK {
		t.Fatal(code, text)
	}
	for _, want := range []string{
		"<h1>sample of d.example</h1>", ", on node n7, known as", "PersistentVolumeClaim", "team-a/&lt;script&gt;", "working for 5s", "Asks the driver for a &lt;volume&gt;.",
		"failing, next look in 1m 30s", "failed 4 times in a row", "no &amp; room", "waiting, until something changes", "its node", "waits for a worker",
		"1 working", "1 failing", "1 waiting", "1 queued", "2h 0m", "team-a/old", "gone wrong", "the &lt;b&gt; is not filled",
		`<span class="dim">zone</span> <b>z1</b>: n1`, `<a href="/metrics">`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing", want)
		}
	}
	for _, never := range []string{"<script", "hidden-uid", "http://", "https://", " src=", "@import"} {
		if strings.Contains(text, never) {
			t.Errorf("%s is there", never)
		}
	}
	if dir := os.Getenv("CSI_TANDEM_PAGES"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, "page.html"), []byte(text), 0o600); err != nil {
			t.Error(err)
		}
	}
}

// TestWhyIsSaidOnce catches a page that shows an error twice in a cell, and a time to wait that is not the one that is left.
func TestWhyIsSaidOnce(t *testing.T) {
	for _, c := range []struct{ said, why, want string }{
		{"Cannot go on, and looks again by itself: class x: not found", "class x: not found", "Cannot go on, and looks again by itself:"},
		{"Waits 118s: snapshot of another driver.", "snapshot of another driver", "Waits:"},
		{"Waits 1m30s: the node.", "the node.", "Waits:"},
		{"Waits, and goes on by itself: the node", "the node", "Waits, and goes on by itself:"},
		{"Cannot go on: asking: class x: not found", "class x: not found; create it", "Cannot go on: asking:"},
		{"Cannot go on: class x", "class xyz: not found; create it", "Cannot go on: class x"},
		{"Asks the driver for volume pvc-1.", "rpc error: no room", "Asks the driver for volume pvc-1."},
		{"Settled.", "", "Settled."},
	} {
		if got := withoutWhy(c.said, c.why); got != c.want {
			t.Errorf("%q, %q: %q, want %q", c.said, c.why, got, c.want)
		}
	}
	b := busy(t)
	b.Say = func(any) string { return "Waits 118s: no & room." }
	if _, text := b.fetch("/"); !strings.Contains(text, `<td>Waits:<div class="dim">no &amp; room</div>`) {
		t.Error("the page does not leave it out")
	}
}

func TestPageBeforeAnythingWorks(t *testing.T) {
	b := conceive(t, func(p *Program) { p.Options.HTTP = HTTPOptions{Endpoint: "x", MetricsPath: "/metrics", Pages: true} })
	if code, text := b.fetch("/"); code != http.StatusOK || !strings.Contains(text, "Nothing is worked on yet") {
		t.Error(code, text)
	}
	for _, path := range []string{"/other", "/statusz/x"} {
		if code, _ := b.fetch(path); code != http.StatusNotFound {
			t.Errorf("%s answers %d", path, code)
		}
	}
}

func TestManyObjectsAreCutShort(t *testing.T) {
	b := busy(t)
	var work []reconcile.Work
	for range shownRows + 7 {
		work = append(work, reconcile.Work{Why: "it"})
	}
	view := b.viewQueue(b.clock.Now(), "X", reconcile.Status{Work: work})
	if len(view.Rows) != shownRows || view.More != 7 || view.Counts[2] != (count{stateWaiting, shownRows + 7}) {
		t.Errorf("%d rows, %d more, %v", len(view.Rows), view.More, view.Counts)
	}
}

// TestZPages: text for people, JSON for those who name kind and version, as the components of Kubernetes have it.
func TestZPages(t *testing.T) {
	b := busy(t)
	b.Options.Master = "https://user:hidden@api.example:6443"
	for _, c := range []struct {
		path, accept string
		code         int
		want         []string
	}{
		{"/statusz", "", 200, []string{"sample statusz\n", "Binary version: v1.2.3", "Up: 0 hr 00 min", "Paths: /flagz /healthz /metrics /readyz /statusz"}},
		{"/statusz", "text/html,application/xml", 200, []string{"sample statusz\n"}},
		{"/flagz", "*/*", 200, []string{"sample flagz\n", "\ntimeout=5s\n", "color=red", "master=https://user:xxxxx@api.example:6443"}},
		{"/statusz", "application/json;g=config.k8s.io;v=v1beta1;as=Statusz", 200, []string{`"kind":"Statusz","apiVersion":"config.k8s.io/v1beta1","metadata":{"name":"sample"}`, `"binaryVersion":"v1.2.3"`}},
		{"/flagz", "application/json;g=config.k8s.io;v=v1beta1;as=Flagz", 200, []string{`"kind":"Flagz"`, `"timeout":"5s"`}},
		{"/flagz", "application/json;g=config.k8s.io;v=v1beta1;as=Statusz", 406, []string{"as=Flagz"}},
		{"/statusz", "application/json", 406, []string{"as=Statusz"}},
		{"/statusz", "application/json;g=config.k8s.io;v=v1beta1;as=Statusz, text/plain", 200, []string{`"kind"`}},
	} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.path, nil)
		request.Header.Set("Accept", c.accept)
		answer := httptest.NewRecorder()
		b.routes().ServeHTTP(answer, request)
		text := answer.Body.String()
		if answer.Code != c.code || strings.Contains(text, "hidden") {
			t.Errorf("%s as %s: %d, %s", c.path, c.accept, answer.Code, text)
		}
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s as %s: without %s: %s", c.path, c.accept, want, text)
			}
		}
		if strings.HasPrefix(answer.Header().Get("Content-Type"), "application/json") && !json.Valid(answer.Body.Bytes()) {
			t.Errorf("%s: %s", c.path, text)
		}
	}
}

func TestPendingMetrics(t *testing.T) {
	b := busy(t)
	_, text := b.fetch("/metrics")
	for _, want := range []string{
		`csi_tandem_pending_objects{kind="PersistentVolumeClaim",queue="claims",state="failing"} 1`,
		`csi_tandem_pending_objects{kind="PersistentVolumeClaim",queue="claims",state="queued"} 1`,
		`csi_tandem_oldest_pending_seconds{kind="PersistentVolumeClaim",queue="claims",reason="deciding"} 180`,
		`csi_tandem_oldest_pending_seconds{kind="PersistentVolumeClaim",queue="claims",reason="NotLookedAt"} 60`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing", want)
		}
	}
}

// TestStandingByHasNothingPending: a process that stands by hears of objects and looks at none. One that shows them as pending would
// wake somebody for each replica that does what it should.
func TestStandingByHasNothingPending(t *testing.T) {
	b := busy(t)
	ended := b.shown.Load().works("claims")
	ended()
	_, metrics := b.fetch("/metrics")
	if strings.Contains(metrics, "csi_tandem_oldest_pending_seconds{") || !strings.Contains(metrics, `kind="PersistentVolumeClaim",queue="claims",state="queued"} 0`) {
		t.Error("something is pending in the metrics")
	}
	if _, text := b.fetch("/"); strings.Contains(text, "waits for a worker") || !strings.Contains(text, "0 queued") {
		t.Error("something is pending on the page")
	}
}

// writer answers each write as it is told to.
type writer struct {
	kube.Client
	err error
}

func (w *writer) Create(context.Context, kube.Resource, kube.Object, kube.Object) error { return w.err }

func (w *writer) Patch(context.Context, kube.Resource, kube.Key, kube.PatchBody, kube.Object) error {
	return w.err
}

func (w *writer) Delete(context.Context, kube.Resource, kube.Key, metav1.DeleteOptions) error {
	return w.err
}

func TestWritesAreCounted(t *testing.T) {
	m := newMeters(nil)
	inner := &writer{}
	client := newCounted(inner, m.process)
	write := func(err error) {
		inner.err = err
		r := kube.ResourceOf[*corev1.PersistentVolume]()
		_ = client.Create(t.Context(), r, &corev1.PersistentVolume{}, nil)
		_ = client.Patch(t.Context(), r, kube.Key{}, kube.PatchBody{Subresource: "status"}, nil)
		_ = client.Delete(t.Context(), r, kube.Key{}, metav1.DeleteOptions{})
	}
	write(nil)
	write(nil)
	write(apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("changed")))
	write(errors.New("connection refused"))
	families, err := m.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if f.GetName() == "csi_tandem_api_writes_total" {
			for _, sample := range f.GetMetric() {
				var labels []string
				for _, l := range sample.GetLabel() {
					labels = append(labels, l.GetValue())
				}
				got[strings.Join(labels, " ")] = sample.GetCounter().GetValue()
			}
		}
	}
	for labels, want := range map[string]float64{
		"201 persistentvolumes create": 2, "200 persistentvolumes/status patch": 2, "200 persistentvolumes delete": 2,
		"409 persistentvolumes create": 1, "0 persistentvolumes delete": 1,
	} {
		if got[labels] != want {
			t.Errorf("%s: %v, want %v", labels, got[labels], want)
		}
	}
}
