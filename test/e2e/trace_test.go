// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
	"github.com/csi-tandem/csi-tandem/test/stage"
)

// collector takes what is sent by OTLP over HTTP.
type collector struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*tracepb.Span
	names map[string]bool
	raw   strings.Builder
	wrong []string
}

func startCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{names: map[string]bool{}}
	c.Server = httptest.NewServer(http.HandlerFunc(c.take))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) take(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	var sent tracepb.TracesData
	if err == nil {
		err = proto.Unmarshal(data, &sent)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || r.URL.Path != "/v1/traces" {
		c.wrong = append(c.wrong, fmt.Sprintf("%s: %v", r.URL, err))
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.raw.Write(data)
	for _, resource := range sent.GetResourceSpans() {
		c.names[attribute(resource.GetResource().GetAttributes(), "service.name")] = true
		for _, scope := range resource.GetScopeSpans() {
			c.spans = append(c.spans, scope.GetSpans()...)
		}
	}
}

func attribute(all []*commonpb.KeyValue, key string) string {
	for _, a := range all {
		if a.GetKey() == key {
			if text := a.GetValue().GetStringValue(); text != "" {
				return text
			}
			return fmt.Sprint(a.GetValue().GetIntValue())
		}
	}
	return ""
}

// traceOf is the one trace that a span of this name with this attribute is in, and the names of all that is in it.
func (c *collector) traceOf(name, key, value string) (id string, names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if s.GetName() == name && attribute(s.GetAttributes(), key) == value {
			id = hex.EncodeToString(s.GetTraceId())
		}
	}
	for _, s := range c.spans {
		if id != "" && hex.EncodeToString(s.GetTraceId()) == id && !slices.Contains(names, s.GetName()) {
			names = append(names, s.GetName())
		}
	}
	return id, names
}

// inTrace waits until all of these are in the trace that the look at an object is in.
func (w *world) inTrace(c *collector, queue, uid string, want ...string) string {
	w.Helper()
	var id string
	w.await("the trace is whole", func() (bool, string) {
		var names []string
		id, names = c.traceOf("reconcile "+queue, "k8s.object.uid", uid)
		for _, name := range want {
			if !slices.Contains(names, name) {
				return false, fmt.Sprintf("there is no %q in %q", name, names)
			}
		}
		return true, ""
	})
	return id
}

// TestTraces: one trace from the claim to the call, over a failure and a new process; one from the snapshot over its content
// to the call; none of it with secrets, parameters or the driver's words in it.
func TestTraces(t *testing.T) {
	t.Parallel()
	c := startCollector(t)
	w := begin(t, setup{cast: func(_ *world, roles *stage.Roles) {
		roles.Flags = append(roles.Flags, "--require-secrets=token="+canary)
		roles.Env = []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_BSP_SCHEDULE_DELAY=100", "OTEL_RESOURCE_ATTRIBUTES=team=storage"}
	}})
	class := w.class("class", parameters(map[string]string{
		"csi.storage.k8s.io/provisioner-secret-name": "creds", "csi.storage.k8s.io/provisioner-secret-namespace": "${pvc.namespace}", "colour": "canary-blue",
	}))
	w.secret("creds", map[string]string{"token": canary})
	failing := w.rule(w.script.Fail(w.ctx, control.On("CreateVolume"), codes.NotFound))
	claim := w.claim("data", class)
	w.awaitCalls("CreateVolume", 1)
	first := w.inTrace(c, "claims", string(claim.UID), "get secrets", "csi.v1.Controller/CreateVolume")
	w.mustNot(w.provisioner.Restart())
	w.release(failing)
	pv := w.bound("data")
	again := w.inTrace(c, "claims", string(claim.UID), "get secrets", "record attempt", "csi.v1.Controller/CreateVolume", "create persistentvolumes")
	if first != again {
		t.Errorf("the retry in a new process is in trace %s, the first try in %s", again, first)
	}
	if id, _ := c.traceOf("csi.v1.Controller/CreateVolume", "csi.volume.handle", pv.Spec.CSI.VolumeHandle); id != again {
		t.Errorf("the call that made the volume is in trace %q, the claim in %s", id, again)
	}
	if id, _ := c.traceOf("csi.v1.Controller/CreateVolume", "rpc.grpc.status_code", fmt.Sprint(int(codes.NotFound))); id != again {
		t.Errorf("the call that failed is in trace %q, the claim in %s", id, again)
	}

	snapshotClass := w.snapshotClass("delete", func(c *snapv1.VolumeSnapshotClass) {
		c.Parameters = map[string]string{"csi.storage.k8s.io/snapshotter-secret-name": "creds", "csi.storage.k8s.io/snapshotter-secret-namespace": "${volumesnapshot.namespace}"}
	})
	w.snapshot("snap", "data", snapshotClass)
	snap, _ := w.ready("snap")
	taken := w.inTrace(c, "csi-snapshotter-snapshot", string(snap.UID), "reconcile csi-snapshotter-content", "create volumesnapshotcontents", "csi.v1.Controller/CreateSnapshot",
		"patch volumesnapshotcontents/status", "patch volumesnapshots/status")
	if taken == again {
		t.Error("claim and snapshot share a trace")
	}
	w.deleteSnapshot("snap")
	w.snapshotGone("snap")
	if id := w.inTrace(c, "csi-snapshotter-snapshot", string(snap.UID), "csi.v1.Controller/DeleteSnapshot"); id == taken {
		t.Error("taking and deleting share a trace")
	}
	w.checkTraces(c)
}

func (w *world) checkTraces(c *collector) {
	w.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.wrong) > 0 || !c.names["provisioner"] || !c.names["snapshotter"] {
		w.Errorf("%q; spans of %v", c.wrong, c.names)
	}
	if strings.Contains(c.raw.String(), "canary") || !strings.Contains(c.raw.String(), "storage") {
		w.Error("a secret, a parameter or the driver's words are in a span, or nothing was looked at")
	}
}

// TestTracesNobodyTakes: wrong settings and a collector that is not there are told once, and all goes on as without.
func TestTracesNobodyTakes(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		env  string
		says string
	}{
		"wrong":   {"OTEL_EXPORTER_OTLP_PROTOCOL=carrier-pigeon", "OTEL_EXPORTER_OTLP_PROTOCOL=carrier-pigeon: only http/protobuf"},
		"nobody":  {"OTEL_EXPORTER_OTLP_TIMEOUT=50", "Traces get lost"},
		"silence": {"OTEL_SDK_DISABLED=true", ""},
	} {
		w := begin(t, setup{name: "traces-" + name, withoutSnapshotter: true, cast: func(_ *world, roles *stage.Roles) {
			roles.Env = []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_BSP_SCHEDULE_DELAY=10", row.env}
		}})
		class := w.class("class")
		for i := range 3 {
			w.claim(fmt.Sprint("data", i), class)
			w.bound(fmt.Sprint("data", i))
		}
		asked := time.Now()
		state := w.provisioner.Terminate()
		if took := time.Since(asked); state.ExitCode() != 0 || took > 10*time.Second {
			t.Errorf("%s: ends after %v with %v", name, took, state)
		}
		log, err := os.ReadFile(w.provisioner.Log)
		w.mustNot(err)
		lines := 0
		for line := range strings.Lines(string(log)) {
			if strings.Contains(line, "OTEL_") || strings.Contains(line, "spans") {
				lines++
			}
		}
		if want := min(len(row.says), 1); lines != want || !strings.Contains(string(log), row.says) {
			t.Errorf("%s: %d lines about traces:\n%s", name, lines, log)
		}
		w.mustNot(w.provisioner.Start())
	}
}
