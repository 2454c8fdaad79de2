// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
	testclock "k8s.io/utils/clock/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gathered is a Tracer whose spans are kept, and its context.
func gathered(t *testing.T) (context.Context, *Tracer, *[]Record, *testclock.FakeClock) {
	t.Helper()
	clk := testclock.NewFakeClock(time.Unix(1000, 0))
	var records []Record
	tracer, err := NewInto(func(r Record) { records = append(records, r) }, Options{Clock: clk, Chance: strings.NewReader(strings.Repeat("seed", 8))})
	if err != nil {
		t.Fatal(err)
	}
	return NewContext(t.Context(), tracer), tracer, &records, clk
}

var claim = Subject{Kind: "PersistentVolumeClaim", Namespace: "ns", Name: "data", UID: "u-1", Operation: Create}

func TestTree(t *testing.T) {
	ctx, tracer, records, clk := gathered(t)
	tracer.ServeDriver("d.example")
	looking, look := Begin(ctx, "claims", "ns", "data")
	clk.Step(time.Second)
	About(looking, claim)
	Chose(looking, "Create")
	calling, call := Start(looking, "csi.v1.Controller/CreateVolume")
	if want := "00-" + call.record.TraceID.String() + "-" + call.record.ID.String() + "-01"; Parent(calling) != want {
		t.Errorf("the driver gets %q, want %q", Parent(calling), want)
	}
	_, nested := Start(calling, "get secrets")
	nested.End("")
	call.Set("empty", "")
	call.SetNumber("rpc.grpc.status_code", 0)
	clk.Step(time.Second)
	call.End("Internal")
	look.End("Internal")
	got := *records
	if len(got) != 3 {
		t.Fatalf("%d spans", len(got))
	}
	inner, outer, root := got[0], got[1], got[2]
	if root.Parent != (SpanID{}) || outer.Parent != root.ID || inner.Parent != outer.ID {
		t.Errorf("the tree: %v in %v in %v", inner, outer, root)
	}
	ids := cmpopts.IgnoreFields(Record{}, "TraceID", "ID", "Parent")
	want := []Record{
		{
			Name: "csi.v1.Controller/CreateVolume", IsRequest: true, Begun: time.Unix(1001, 0), End: time.Unix(1002, 0),
			Failed: "Internal", Attributes: []Attribute{{Key: "rpc.grpc.status_code"}},
		},
		{
			Name: "reconcile claims", Begun: time.Unix(1000, 0), End: time.Unix(1002, 0), Failed: "Internal",
			Attributes: []Attribute{
				{Key: "k8s.object.kind", Text: "PersistentVolumeClaim"}, {Key: "k8s.namespace.name", Text: "ns"},
				{Key: "k8s.object.name", Text: "data"}, {Key: "k8s.object.uid", Text: "u-1"},
				{Key: "csi_tandem.operation", Text: "create"}, {Key: "csi.driver.name", Text: "d.example"}, {Key: "csi_tandem.step", Text: "Create"},
			},
		},
	}
	if d := cmp.Diff(want, got[1:], ids); d != "" {
		t.Error(d)
	}
}

// TestOneTraceForEachOperation catches ids that are made anew with each look or each process, and those that mix what is made
// with what is deleted.
func TestOneTraceForEachOperation(t *testing.T) {
	of := func(chance string, s Subject) TraceID {
		g, err := newIDs(strings.NewReader(strings.Repeat(chance, 32)))
		if err != nil {
			t.Fatal(err)
		}
		return g.trace(s)
	}
	deleted, content := claim, Subject{UID: "u-2", Of: "u-1", Operation: Create}
	deleted.Operation = Delete
	if of("a", claim) != of("b", claim) || of("a", content) != of("b", claim) {
		t.Error("another process begins another trace")
	}
	if of("a", claim) == of("a", deleted) || of("a", claim) == of("a", Subject{UID: "u-2", Operation: Create}) {
		t.Error("two operations or objects share a trace")
	}
	if of("a", Subject{}) == of("b", Subject{}) {
		t.Error("all that has no object shares a trace")
	}
	if _, err := newIDs(strings.NewReader("short")); err == nil {
		t.Error("ids without chance")
	}
}

// TestLookThatDidNothing: at the start of a large cluster each settled object is looked at.
func TestLookThatDidNothing(t *testing.T) {
	ctx, _, records, _ := gathered(t)
	looking, look := Begin(ctx, "claims", "ns", "data")
	About(looking, claim)
	look.End("")
	if _, late := Start(looking, "late"); !late.IsNone() || len(*records) != 0 {
		t.Errorf("spans of nothing: %v", *records)
	}
	_, look = Begin(ctx, "claims", "ns", "data")
	look.End("Failed")
	if len(*records) != 1 || (*records)[0].Failed != "Failed" {
		t.Errorf("a failure without a request: %v", *records)
	}
}

// TestTheFirstObjectDecides: spans of one look cannot be in two traces.
func TestTheFirstObjectDecides(t *testing.T) {
	ctx, _, records, _ := gathered(t)
	looking, look := Begin(ctx, "claims", "", "")
	About(looking, claim)
	About(looking, Subject{UID: "u-2"})
	_, span := Start(looking, "a")
	About(looking, Subject{UID: "u-3"})
	span.End("")
	look.End("")
	g := &ids{}
	for _, r := range *records {
		if r.TraceID != g.trace(claim) {
			t.Errorf("%s is in another trace", r.Name)
		}
	}
}

func TestWithoutTracer(t *testing.T) {
	ctx, look := Begin(NewContext(t.Context(), nil), "claims", "ns", "data")
	if ctx != t.Context() || look != nil || IsTraced(ctx) {
		t.Error("the context of what is not traced has changed")
	}
	About(ctx, claim)
	Chose(ctx, "Create")
	inner, span := Start(ctx, "a")
	span.Set("a", "b")
	span.SetNumber("a", 1)
	span.End("why")
	look.End("why")
	if inner != ctx || !span.IsNone() || Parent(inner) != "" {
		t.Error("a span without a Tracer")
	}
	var none *Tracer
	none.ServeDriver("a")
	none.Shutdown(ctx)
	if n := testing.AllocsPerRun(100, func() {
		_, look := Begin(ctx, "claims", "ns", "data")
		_, span := Start(ctx, "a")
		span.End("")
		look.End("")
	}); n != 0 {
		t.Errorf("%v allocations for nothing", n)
	}
}

// TestShare catches a sampler that takes the looks of one object by chance, and one that still tells the driver to record.
func TestShare(t *testing.T) {
	ctx, tracer, records, _ := gathered(t)
	tracer.share = shareOf(0.25)
	taken := 0
	for n := range 2000 {
		uid := strings.Repeat("x", n)
		before := len(*records)
		for range 2 {
			looking, look := Begin(ctx, "claims", "", "")
			About(looking, Subject{UID: "u" + uid})
			calling, span := Start(looking, "a")
			if sampled := strings.HasSuffix(Parent(calling), "-01"); sampled != tracer.share.has(span.record.TraceID) {
				t.Fatalf("the driver gets %s", Parent(calling))
			}
			span.End("")
			look.End("")
		}
		switch len(*records) - before {
		case 0:
		case 4:
			taken++
		default:
			t.Fatalf("a part of what happened to one object is traced")
		}
	}
	if taken < 400 || taken > 600 {
		t.Errorf("%d of 2000 for a quarter", taken)
	}
	if !shareOf(1).has(TraceID{15: 255}) || shareOf(0).has(TraceID{}) {
		t.Error("all or none is not")
	}
}
