// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
	testclock "k8s.io/utils/clock/testing"
)

// collector takes spans, and answers as it is told.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	spans   []*tracepb.Span
	headers http.Header
	last    *tracepb.ResourceSpans
	answers []int
	posts   int
	came    chan struct{}
	hold    chan struct{}
}

func newCollector(t *testing.T, answers ...int) *collector {
	t.Helper()
	c := &collector{answers: answers, came: make(chan struct{}, 100), hold: make(chan struct{})}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			var err error
			if body, err = gzip.NewReader(r.Body); err != nil {
				t.Error(err)
			}
		}
		data, err := io.ReadAll(body)
		var sent tracepb.TracesData // an ExportTraceServiceRequest, field by field
		if err == nil {
			err = proto.Unmarshal(data, &sent)
		}
		if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s, %v: %v", r.URL, r.Header, err)
		}
		c.take(w, r, &sent)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) take(w http.ResponseWriter, r *http.Request, sent *tracepb.TracesData) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() { c.came <- struct{}{} }()
	c.posts++
	c.headers = r.Header
	if len(c.answers) > 0 {
		answer := c.answers[0]
		c.answers = c.answers[1:]
		if answer == 0 {
			c.mu.Unlock()
			<-c.hold
			c.mu.Lock()
			return
		}
		if answer != http.StatusOK {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(answer)
			return
		}
	}
	for _, resource := range sent.GetResourceSpans() {
		c.last = resource
		for _, scope := range resource.GetScopeSpans() {
			c.spans = append(c.spans, scope.GetSpans()...)
		}
	}
}

// told are the complaints; nil stands for the end of one.
type told struct {
	mu   sync.Mutex
	said []error
}

func (o *told) complain(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.said = append(o.said, err)
}

// sending is a Tracer whose spans go to an endpoint.
func sending(t *testing.T, endpoint string, more map[string]string) (context.Context, *Tracer, *told, *testclock.FakeClock) {
	t.Helper()
	said := map[string]string{general + "ENDPOINT": endpoint}
	for name, value := range more {
		said[name] = value
	}
	set(t, said)
	clk, complaints := testclock.NewFakeClock(time.Unix(1000, 0)), &told{}
	tracer, err := New(t.Context(), Options{
		Program: "provisioner", Version: "v1", Clock: clk, Chance: strings.NewReader(strings.Repeat("seed", 8)), Complain: complaints.complain,
	})
	if err != nil {
		t.Fatal(err)
	}
	return NewContext(t.Context(), tracer), tracer, complaints, clk
}

// span makes one look with one request.
func span(ctx context.Context) {
	looking, look := Begin(ctx, "claims", "ns", "data")
	About(looking, claim)
	_, call := Start(looking, "call \xff")
	call.SetNumber("code", 13)
	call.End("Internal")
	look.End("")
}

// waiting returns when the sender waits for its clock.
func waiting(clk *testclock.FakeClock) {
	for !clk.HasWaiters() {
		time.Sleep(time.Millisecond)
	}
}

// TestWire reads what is sent with the types that OpenTelemetry generates.
func TestWire(t *testing.T) {
	c := newCollector(t)
	ctx, tracer, complaints, clk := sending(t, c.URL, map[string]string{general + "COMPRESSION": "gzip", general + "HEADERS": "authorization=Bearer%20x"})
	span(ctx)
	waiting(clk)
	clk.Step(5 * time.Second)
	<-c.came
	tracer.Shutdown(t.Context())
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.spans) != 2 || c.headers.Get("Authorization") != "Bearer x" || c.headers.Get("User-Agent") != "provisioner/v1" || len(complaints.said) > 0 {
		t.Fatalf("%v, %v, %v", c.spans, c.headers, complaints.said)
	}
	if name := c.last.GetResource().GetAttributes()[0]; name.GetKey() != "service.name" || name.GetValue().GetStringValue() != "provisioner" {
		t.Errorf("the resource is %v", c.last.GetResource())
	}
	call, root := c.spans[0], c.spans[1]
	if call.GetName() != "call �" || call.GetKind() != tracepb.Span_SPAN_KIND_CLIENT || root.GetKind() != tracepb.Span_SPAN_KIND_INTERNAL ||
		call.GetStatus().GetCode() != tracepb.Status_STATUS_CODE_ERROR || call.GetStatus().GetMessage() != "Internal" || root.GetStatus() != nil {
		t.Errorf("%v\n%v", call, root)
	}
	if string(call.GetParentSpanId()) != string(root.GetSpanId()) || string(call.GetTraceId()) != string(root.GetTraceId()) ||
		len(call.GetTraceId()) != 16 || len(call.GetSpanId()) != 8 || len(root.GetParentSpanId()) != 0 || call.GetFlags() != flagsSampled {
		t.Errorf("%v\n%v", call, root)
	}
	if at := uint64(time.Unix(1000, 0).UnixNano()); call.GetStartTimeUnixNano() != at || call.GetEndTimeUnixNano() != at {
		t.Errorf("from %d to %d", call.GetStartTimeUnixNano(), call.GetEndTimeUnixNano())
	}
	if code := call.GetAttributes()[0]; code.GetKey() != "code" || code.GetValue().GetIntValue() != 13 {
		t.Errorf("%v", code)
	}
}

// TestShutdownSends catches an end that drops what waits for its batch, and batches that are larger than was asked for.
func TestShutdownSends(t *testing.T) {
	c := newCollector(t)
	ctx, tracer, _, _ := sending(t, c.URL, map[string]string{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "3"})
	for range 5 {
		span(ctx)
	}
	tracer.Shutdown(t.Context())
	tracer.Shutdown(t.Context())
	span(ctx) // of what is too late
	if len(c.spans) != 10 || c.posts != 4 {
		t.Errorf("%d spans in %d posts", len(c.spans), c.posts)
	}
}

// TestCollectorThatHangs: nothing waits for it, its queue is bounded, and the end comes when it has to.
func TestCollectorThatHangs(t *testing.T) {
	c := newCollector(t, 0)
	defer close(c.hold)
	ctx, tracer, complaints, _ := sending(t, c.URL, map[string]string{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "1", "OTEL_BSP_MAX_QUEUE_SIZE": "4"})
	for range 100 {
		span(ctx)
	}
	if len(tracer.queue.waiting) > 4 {
		t.Errorf("%d wait", len(tracer.queue.waiting))
	}
	ending, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	tracer.Shutdown(ending)
	if len(complaints.said) != 2 || !strings.Contains(complaints.said[0].Error(), "room for 4") {
		t.Errorf("told %v", complaints.said)
	}
}

// TestUnreachableIsToldOnce: batch after batch finds nobody, and then somebody.
func TestUnreachableIsToldOnce(t *testing.T) {
	c := newCollector(t, http.StatusForbidden, http.StatusForbidden, http.StatusTemporaryRedirect)
	ctx, tracer, complaints, _ := sending(t, c.URL, map[string]string{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "2"})
	for range 4 {
		span(ctx)
		<-c.came
	}
	tracer.Shutdown(t.Context())
	if len(complaints.said) != 2 || !strings.Contains(complaints.said[0].Error(), "403") || complaints.said[1] != nil {
		t.Errorf("told %v", complaints.said)
	}
	if c.posts != 4 || len(c.spans) != 2 {
		t.Errorf("%d spans in %d posts", len(c.spans), c.posts)
	}
}

// TestBusyCollectorIsAskedAgain catches spans that are dropped by a collector which restarts.
func TestBusyCollectorIsAskedAgain(t *testing.T) {
	c := newCollector(t, http.StatusServiceUnavailable, http.StatusTooManyRequests)
	ctx, tracer, complaints, clk := sending(t, c.URL, map[string]string{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "1"})
	span(ctx)
	for _, delay := range []time.Duration{firstDelay, 2 * firstDelay} {
		<-c.came
		waiting(clk)
		clk.Step(delay)
	}
	tracer.Shutdown(t.Context())
	if len(c.spans) != 2 || len(complaints.said) > 0 {
		t.Errorf("%d spans, told %v", len(c.spans), complaints.said)
	}
}
