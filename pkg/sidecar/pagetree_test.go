// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
)

// zoned is a process with a room of capacities: zone z1 has two nodes, z2 one, and the class names come from users.
func zoned(t *testing.T) *being {
	t.Helper()
	b := conceive(t, func(p *Program) { p.Options.HTTP = HTTPOptions{Endpoint: "x", MetricsPath: "/metrics", Pages: true} })
	now := b.clock.Now()
	index := topology.NewIndex()
	for node, zone := range map[string]string{"n1": "z1", "n2": "z1", "n3": "z2", "n4": ""} {
		labels := map[string]string{"a": "1", "zone": zone}
		if zone == "" {
			delete(labels, "zone")
		}
		index.SetNode(node, labels)
		index.SetDriverKeys(node, []string{"zone", "a"})
	}
	small := int64(3 << 30)
	spaces := func() []Space {
		return []Space{
			{Segment: "{a: 1, zone: z1}", Classes: []string{"<b>fast</b>", "quick"}, IsKnown: true, Available: 5 << 40 / 2, Maximum: &small, Since: now.Add(-40 * time.Second)},
			{Segment: "{a: 1, zone: z1}", Classes: []string{"slow"}, IsKnown: true, Available: 999, Since: now.Add(-3 * time.Minute), Failures: 2},
			{Segment: "{a: 1, zone: z2}", Classes: []string{"slow"}, Since: now.Add(-time.Minute), Failures: 1},
			{Segment: "{}", Classes: []string{"elsewhere"}, IsKnown: true, Since: now},
		}
	}
	b.show(&Env{DriverName: "d.example", index: index}, []Runnable{{Name: "capacity", Spaces: spaces}}, b.meters.rooms.Load())
	return b
}

// TestPageTree: each segment shows its own room. One that matches by a single value, or leaves out what failed, would show
// a zone that is full of what another has.
func TestPageTree(t *testing.T) {
	b := zoned(t)
	code, text := b.fetch("/")
	if code != http.StatusOK {
		t.Fatal(code, text)
	}
	_, tree, _ := strings.Cut(text, "Where the driver runs")
	_, first, _ := strings.Cut(tree, "<b>z1</b>: n1, n2")
	first, second, _ := strings.Cut(first, "<b>z2</b>: n3")
	for part, wants := range map[string][]string{
		first: {
			`room for 2.5 TiB, in volumes of 3 GiB at most <span class="dim">for &lt;b&gt;fast&lt;/b&gt;, quick, 40s ago</span>`,
			`<div class="failing">room for 999 B <span class="dim">for slow, 3m 0s ago, no answer since</span>`,
		},
		second: {`<div class="failing">no answer about its room yet <span class="dim">for slow, asked first 1m 0s ago</span>`},
		tree:   {"(no such label)</b>: n4"},
	} {
		for _, want := range wants {
			if !strings.Contains(part, want) {
				t.Errorf("%s is missing in %s", want, part)
			}
		}
	}
	if strings.Contains(tree, "elsewhere") || strings.Count(tree, "room for") != 2 {
		t.Errorf("the tree is %s", tree)
	}
}

// TestLackIsShown: who has switched something on and waits for what does not come looks here. Catches a page that shows it with
// the rooms, of which this one has no queue to show, and one that goes on when nothing is missing any more.
func TestLackIsShown(t *testing.T) {
	b := conceive(t, func(p *Program) { p.Options.HTTP = HTTPOptions{Endpoint: "x", MetricsPath: "/metrics", Pages: true} })
	lack := `no CSINode lists driver "<d>"`
	b.show(&Env{DriverName: "d.example", index: topology.NewIndex()}, []Runnable{{Name: "capacity", Lack: func() string { return lack }}}, b.meters.rooms.Load())
	const begins = "No storage capacity is published: "
	if _, text := b.fetch("/"); !strings.Contains(text, begins+"no CSINode lists driver &#34;&lt;d&gt;&#34;.") {
		t.Errorf("it is not shown: %s", text)
	}
	lack = ""
	if _, text := b.fetch("/"); strings.Contains(text, begins) {
		t.Errorf("it is shown still: %s", text)
	}
}

// TestTreeIsCutShort: the page of a cluster with thousands of nodes stays one that can be read.
func TestTreeIsCutShort(t *testing.T) {
	index := topology.NewIndex()
	for i := range shownBranches + 3 {
		name := fmt.Sprintf("n%03d", i)
		index.SetNode(name, map[string]string{"host": name})
		index.SetDriverKeys(name, []string{"host"})
	}
	if views, more := viewTree(index.Tree(), nil); len(views) != shownBranches || more != 3 {
		t.Errorf("%d branches and %d more", len(views), more)
	}
	index = topology.NewIndex()
	for i := range shownNodes + 5 {
		name := fmt.Sprint("n", i)
		index.SetNode(name, nil)
		index.SetDriverKeys(name, nil)
	}
	if views, more := viewTree(index.Tree(), nil); more != 0 || len(views) != 1 || len(views[0].Nodes) != shownNodes || views[0].MoreNodes != 5 {
		t.Errorf("%+v and %d more", views, more)
	}
}

func TestSizes(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 10 << 30: "10 GiB", 1<<40 - 1: "1024 GiB", 1<<63 - 1: "8 EiB",
	} {
		if got := size(bytes); got != want {
			t.Errorf("%d is %s, want %s", bytes, got, want)
		}
	}
}

// TestLatencyMetric: what rooms have measured is a histogram whose buckets are those that were agreed on.
func TestLatencyMetric(t *testing.T) {
	b := conceive(t, func(p *Program) { p.Options.HTTP = HTTPOptions{Endpoint: "x", MetricsPath: "/metrics"} })
	status := func() reconcile.Status {
		return reconcile.Status{Queue: "claims", Latencies: map[string]reconcile.Latency{
			reconcile.Provisioned: {Count: 3, Sum: 41.5, Within: map[float64]uint64{1: 1, 10: 2}},
		}}
	}
	b.show(&Env{}, []Runnable{{Name: "claims", Kind: "PersistentVolumeClaim", Status: status}}, b.meters.rooms.Load())
	_, text := b.fetch("/metrics")
	const labels = `{goal="provisioned",kind="PersistentVolumeClaim",queue="claims"`
	for _, want := range []string{
		"csi_tandem_end_to_end_seconds_bucket" + labels + `,le="1"} 1`, "csi_tandem_end_to_end_seconds_bucket" + labels + `,le="10"} 2`,
		"csi_tandem_end_to_end_seconds_bucket" + labels + `,le="+Inf"} 3`, "csi_tandem_end_to_end_seconds_sum" + labels + "} 41.5",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing", want)
		}
	}
}
