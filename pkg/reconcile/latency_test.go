// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	testclock "k8s.io/utils/clock/testing"
)

// TestLatency: one that measures a try, and not the time since the key was asked for first, shows a second where users
// waited for minutes; one that believes the rounded time of a young object shows up to a second where there was none.
func TestLatency(t *testing.T) {
	start := time.Unix(1000, 0)
	clk := testclock.NewFakeClock(start)
	var fails bool
	var made time.Time
	q := NewQueue(func(ctx context.Context, _ Key) (Result, error) {
		if fails {
			return Result{}, errors.New("no")
		}
		Reached(ctx, Provisioned, made)
		return Result{}, nil
	}, Options{Name: "q", RetryStart: time.Second, RetryMax: time.Minute, Clock: clk})
	q.begin()
	defer q.queue.ShutDown()
	if got := q.Status().Latencies; got != nil {
		t.Errorf("before anything: %v", got)
	}
	sum := 0.0
	for _, c := range []struct {
		name string
		made time.Time
		want float64
	}{
		{"does not know", time.Time{}, 40},
		{"young, rounded down", clk.Now().Add(-900 * time.Millisecond), 40},
		{"older than the process", clk.Now().Add(-time.Hour), 3640},
		{"of a clock that runs ahead", clk.Now().Add(time.Hour), 40},
	} {
		begun := clk.Now()
		if !c.made.IsZero() {
			made = begun.Add(c.made.Sub(start))
		}
		q.Add(key(c.name))
		fails = true
		q.handleOne(t.Context(), key(c.name))
		clk.Step(40 * time.Second)
		fails = false
		q.handleOne(t.Context(), key(c.name))
		if got := q.Status().Latencies[Provisioned].Sum - sum; got != c.want {
			t.Errorf("%s: %v seconds, want %v", c.name, got, c.want)
		}
		sum, made = q.Status().Latencies[Provisioned].Sum, time.Time{}
	}
	got := q.Status().Latencies[Provisioned]
	if got.Count != 4 || got.Within[30] != 0 || got.Within[60] != 3 || got.Within[3600] != 3 || len(got.Within) != len(Bounds) {
		t.Errorf("the histogram is %+v", got)
	}
	got.Within[60] = 77
	if again := q.Status().Latencies[Provisioned]; again.Within[60] != 3 {
		t.Error("who looks at it changes it")
	}
}

// TestPostponed: a deletion that waits for its next try stays a deletion for whoever looks at it, also after a look that came
// too early; one that shows the wait hides from the metrics that it is a deletion that fails.
func TestPostponed(t *testing.T) {
	var early bool
	q := NewQueue(func(ctx context.Context, k Key) (Result, error) {
		if !early && k.Name == "x" {
			Chose(ctx, create{})
		}
		Postponed(ctx, wait{})
		return Result{After: time.Minute, Why: "the last try failed"}, nil
	}, Options{Name: "q", RetryStart: time.Second, RetryMax: time.Second, Clock: testclock.NewFakeClock(time.Unix(1000, 0))})
	q.begin()
	defer q.queue.ShutDown()
	for range 2 {
		q.handleOne(t.Context(), key("x"))
		if got := q.Status().Work[0].StepName(); got != "create" {
			t.Errorf("too early: %v, it stands at %s", early, got)
		}
		early = true
	}
	q.handleOne(t.Context(), key("y"))
	if got := q.Status().Work[1].StepName(); got != "wait" {
		t.Errorf("one that only waits stands at %s", got)
	}
}

// Outside a queue there is nobody to note it.
func TestReachedOutsideAQueue(t *testing.T) {
	Reached(t.Context(), Ready, time.Time{})
	Chose(t.Context(), wait{})
	Postponed(t.Context(), wait{})
}

// TestLinesNameTheLife: each line about a key has its queue, its key and the id of the life that it is part of, also the
// lines of what is called below. One that gives the id to the room only loses it in the line about the failure.
func TestLinesNameTheLife(t *testing.T) {
	var text bytes.Buffer
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&text)))
	q := NewQueue(func(ctx context.Context, _ Key) (Result, error) {
		klog.FromContext(ctx).Info("below")
		return Result{}, errors.New("no")
	}, Options{Name: "q", RetryStart: time.Second, RetryMax: time.Second, Clock: testclock.NewFakeClock(time.Unix(1000, 0)), ID: func(k Key) types.UID {
		return types.UID(strings.TrimPrefix(k.Name, "unknown"))
	}})
	q.begin()
	defer q.queue.ShutDown()
	q.handleOne(klog.NewContext(t.Context(), logger), key("life-1"))
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("%q", lines)
	}
	for _, line := range lines {
		if !strings.Contains(line, `queue="q" key="ns/life-1" id="life-1"`) {
			t.Error(line)
		}
	}
	text.Reset()
	q.handleOne(klog.NewContext(t.Context(), logger), key("unknown"))
	if strings.Contains(text.String(), " id=") {
		t.Error("an id is made up:", text.String())
	}
}
