// SPDX-License-Identifier: Apache-2.0

package storagecapacity

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/pkg/capacity"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// freshness reads the two metrics that say how old the answers are; -1 stands for one that is not there.
func freshness(t *testing.T, registry *prometheus.Registry) (oldest, poll float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	oldest, poll = -1, -1
	for _, family := range families {
		switch family.GetName() {
		case "csi_tandem_capacity_oldest_answer_seconds":
			oldest = family.GetMetric()[0].GetGauge().GetValue()
		case "csi_tandem_capacity_poll_interval_seconds":
			poll = family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return oldest, poll
}

// TestFreshness: one segment without an answer among others that have theirs must show. An age that is taken from the last
// answer of any, from the last question, or from answers alone would not grow.
func TestFreshness(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	h := world(t, "a", "b")
	h.Put(late("slow", "pool=slow"))
	c := start(h, func(_ *Options, deps *Deps) { deps.Registry = registry })
	if oldest, poll := freshness(t, registry); oldest != -1 || poll != 60 {
		t.Errorf("before the first question: %v, polls each %v", oldest, poll)
	}
	h.Settle()
	h.Clock.Step(7 * time.Second)
	settled, _ := freshness(t, registry)
	if settled < 7 || settled > 30 {
		t.Errorf("the answers are %v seconds old", settled)
	}
	h.Driver.Next("GetCapacity", kit.Reply{Code: codes.Unavailable, Times: 1 << 30})
	h.Horizon = 10 * time.Minute
	h.Settle()
	if oldest, _ := freshness(t, registry); oldest < 590 {
		t.Errorf("ten minutes without an answer: %v", oldest)
	}
	for _, known := range c.Known() {
		if known.Failures == 0 || known.Room == nil || h.Clock.Since(known.Since) < 590*time.Second {
			t.Errorf("%+v", known)
		}
	}
}

func TestNeverAnswered(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	h := world(t, "a")
	h.Driver.Next("GetCapacity", kit.Reply{Code: codes.Unavailable, Times: 1 << 30})
	c := start(h, func(_ *Options, deps *Deps) { deps.Registry = registry })
	h.Horizon = 5 * time.Minute
	h.Settle()
	if oldest, _ := freshness(t, registry); oldest < 240 {
		t.Errorf("four minutes without any answer: %v", oldest)
	}
	known := c.Known()
	if len(known) != 1 || known[0].Room != nil || known[0].Segment != "{zone: a}" {
		t.Errorf("%+v", known)
	}
}

// TestKnown: classes with the same parameters share an answer, and one that is gone is not shown.
func TestKnown(t *testing.T) {
	h := world(t, "b", "a")
	h.Put(late("quick"), late("slow", "pool=slow"))
	c := start(h)
	h.Settle()
	type line struct {
		segment string
		classes []string
		room    *capacity.Room
	}
	shown := func() (lines []line) {
		for _, k := range c.Known() {
			lines = append(lines, line{k.Segment, k.Classes, k.Room})
		}
		return lines
	}
	room := &capacity.Room{Available: 1 << 40}
	want := []line{
		{"{zone: a}", []string{"fast", "quick"}, room}, {"{zone: a}", []string{"slow"}, room},
		{"{zone: b}", []string{"fast", "quick"}, room}, {"{zone: b}", []string{"slow"}, room},
	}
	if diff := cmp.Diff(want, shown(), cmp.AllowUnexported(line{})); diff != "" {
		t.Error(diff)
	}
	kit.Remove[*storagev1.StorageClass](h.API, kube.Key{Name: "slow"})
	h.Settle()
	if got := shown(); len(got) != 2 {
		t.Errorf("after a class has gone: %+v", got)
	}
}
