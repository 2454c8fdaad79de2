// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"bytes"
	"context"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// PW-18: a segment in the order of a map matches what was made of it only by chance.
func TestOnlyThisNode(t *testing.T) {
	place := topology.SegmentOf(map[string]string{"zone": "z", "host": "h", "rack": "r"})
	for _, c := range []struct {
		name  string
		place topology.Segment
		want  []topology.Segment
	}{
		{"PW-18 several keys", place, []topology.Segment{{{Key: "host", Value: "h"}, {Key: "rack", Value: "r"}, {Key: "zone", Value: "z"}}}},
		{"no topology", nil, []topology.Segment{{}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &Env{Node: "n1", Place: c.place}
			if d := cmp.Diff(c.want, e.Topology().Segments()); d != "" {
				t.Error(d)
			}
			if e.TopologyCaches() != nil || len(e.informers) != 0 {
				t.Error("nodes are watched")
			}
			if e.Topology() != e.Topology() {
				t.Error("there are two indexes")
			}
		})
	}
}

func TestContentsOfOneNode(t *testing.T) {
	e := &Env{Client: kit.New(t).API, Options: NewOptions(), Node: "n1", Narrow: Narrow{Contents: "node=n1"}}
	own, all := e.LocalContents(), e.Contents()
	if own == all || own != e.LocalContents() || all != e.Contents() || len(e.informers) != 2 {
		t.Error("the contents of one node and all of them are two caches, each made once")
	}
	whole := &Env{Client: kit.New(t).API, Options: NewOptions()}
	if whole.LocalContents() != whole.Contents() {
		t.Error("for the whole cluster they are the same")
	}
}

// S96: a process that saw what is marked for other nodes would work on it.
func TestOnlyContentsOfTheNodeAreSeen(t *testing.T) {
	of := func(name, node string) *kube.Content {
		return kit.NamedContent(name, func(c *kube.Content) { c.Labels = map[string]string{wellknown.LabelManagedBy: node} })
	}
	h := kit.New(t)
	h.Put(of("theirs", "n2"), kit.NamedContent("nobodys"), of("ours", "n1"))
	e := &Env{Client: h.API, Options: NewOptions(), Node: "n1", Narrow: Narrow{Contents: wellknown.LabelManagedBy + "=n1"}}
	seen := make(chan string, 10)
	contents := e.LocalContents()
	contents.OnChange(func(c kube.Change[*kube.Content]) { seen <- c.New.Name })
	ctx, stop := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() { contents.Run(ctx) })
	got := []string{<-seen}
	h.Put(of("also-theirs", "n2"), of("also-ours", "n1"))
	got = append(got, <-seen)
	stop()
	wait.Wait()
	if d := cmp.Diff([]string{"ours", "also-ours"}, got); d != "" || len(contents.All()) != 2 {
		t.Error(d)
	}
}

func TestTrimVolumeGoesAround(t *testing.T) {
	e := &Env{DriverName: "d", Narrow: Narrow{TrimVolume: func(trim func(*corev1.PersistentVolume)) func(*corev1.PersistentVolume) {
		return func(v *corev1.PersistentVolume) { trim(v); v.Name = "seen" }
	}}}
	v := &corev1.PersistentVolume{}
	if e.trimVolume()(v); v.Name != "seen" {
		t.Error("the other trimming was not asked")
	}
}

func TestLeads(t *testing.T) {
	for _, c := range []struct {
		name    string
		lead    Lead
		enabled bool
		want    bool
	}{
		{"as asked", LeadIfAsked, true, true}, {"as not asked", LeadIfAsked, false, false},
		{"always", LeadAlways, false, true}, {"never", LeadNever, true, false},
	} {
		p := newProcess(sample(), &bytes.Buffer{}, &bytes.Buffer{})
		p.Options.Election.Enabled = c.enabled
		if got := (&life{process: p}).elects([]Runnable{{Lead: c.lead}}); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestNodeInNames(t *testing.T) {
	if got := newIdentity(time.UnixMilli(1700000000123), "d.example", "n1"); !regexp.MustCompile(`^1700000000123-\d{1,4}-d\.example-n1$`).MatchString(got) {
		t.Errorf("identity %q", got)
	}
	for node, want := range map[string]string{"": "d-example", "n.1": "d-example-n-1"} {
		p := newProcess(sample(), &bytes.Buffer{}, &bytes.Buffer{})
		p.node = node
		if got := (&life{process: p}).leaseFor("d-example"); got != want {
			t.Errorf("node %q: lease %q", node, got)
		}
	}
}

// TestNodeNameIsNeeded: without its name a process would take no claim, and say nothing.
func TestNodeNameIsNeeded(t *testing.T) {
	program := sample()
	program.PerNode = func() bool { return true }
	for name, wanted := range map[string]bool{"": true, "n1": false} {
		t.Setenv(nodeVariable, name)
		p := newProcess(program, &bytes.Buffer{}, &bytes.Buffer{})
		if err := p.readNode(); (err != nil) != wanted || p.node != name {
			t.Errorf("%q: node %q, %v", name, p.node, err)
		}
	}
}
