// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/trace"
)

// TestLooksAreTraced catches looks that leave a span for nothing, conflicts that count as failures, and words of others.
func TestLooksAreTraced(t *testing.T) {
	clk := testclock.NewFakeClock(time.Unix(1000, 0))
	var got []string
	tracer, err := trace.NewInto(func(r trace.Record) {
		line := r.Name + " → " + r.Failed
		for _, a := range r.Attributes {
			line += " " + a.Key + "=" + a.Text
		}
		got = append(got, line)
	}, trace.Options{Clock: clk, Chance: strings.NewReader(strings.Repeat("seed", 8))})
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]error{
		"nothing": nil, "words": errors.New("canary"), "driver": fault.Malformed(fault.CreateVolume, "canary"),
		"conflict": apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("canary")),
		"server":   apierrors.NewServiceUnavailable("canary"),
	}
	q := NewQueue(func(ctx context.Context, k Key) (Result, error) {
		Chose(ctx, create{})
		if k.Name == "works" {
			_, span := trace.Start(ctx, "a request")
			span.End("")
		}
		return Result{}, answers[k.Name]
	}, Options{Name: "q", Clock: clk})
	q.begin()
	defer q.queue.ShutDown()
	for _, name := range []string{"nothing", "works", "words", "driver", "conflict", "server"} {
		q.handleOne(trace.NewContext(t.Context(), tracer), key(name))
	}
	const rest = " csi_tandem.step=create"
	want := []string{
		"a request → ", "reconcile q →  k8s.namespace.name=ns k8s.object.name=works" + rest,
		"reconcile q → Failed k8s.namespace.name=ns k8s.object.name=words" + rest,
		"reconcile q → Internal k8s.namespace.name=ns k8s.object.name=driver" + rest,
		"reconcile q → ServiceUnavailable k8s.namespace.name=ns k8s.object.name=server" + rest,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
