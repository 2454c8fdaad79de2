// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func segments(x *Index) string {
	var all []string
	for _, s := range x.Segments() {
		all = append(all, s.String())
	}
	return strings.Join(all, " ")
}

func immediate(x *Index) string {
	got, err := x.Requirement(Question{Claim: "testset-1", Driver: "d", Options: Options{Immediate: true}})
	if err != nil {
		return err.Error()
	}
	return show(got.Requirement.GetRequisite())
}

func TestIndexFollowsTheCluster(t *testing.T) {
	x := NewIndex()
	for _, step := range []struct {
		name      string
		do        func()
		segments  string
		immediate string
	}{
		{"CSINode before its Node", func() { x.SetDriverKeys("n1", []string{"zone"}) }, "", "topologyKeys [zone] were not found on any nodes"},
		{"Node arrives", func() { x.SetNode("n1", parse("zone=a")) }, "{zone: a}", "{zone: a}"},
		{"a node without driver", func() { x.SetNode("n2", parse("zone=b")) }, "{zone: a}", "{zone: a} {zone: b}"},
		{"driver comes, keys unsorted", func() { x.SetDriverKeys("n2", []string{"zone", "rack", "zone"}) }, "{zone: a}", "{zone: a}"},
		{"and its second label", func() { x.SetNode("n2", parse("zone=b,rack=1")) }, "{zone: a} {rack: 1, zone: b}", "{zone: a} {rack: 1, zone: b}"},
		{"label changes", func() { x.SetNode("n1", parse("zone=c")) }, "{zone: c} {rack: 1, zone: b}", "{zone: c} {rack: 1, zone: b}"},
		{"B039 keys vanish on one node", func() { x.SetDriverKeys("n2", nil) }, "{} {zone: c}", "{zone: b} {zone: c}"},
		{"driver leaves", func() { x.RemoveDriver("n2") }, "{zone: c}", "{zone: b} {zone: c}"},
		{"Node leaves", func() { x.RemoveNode("n2") }, "{zone: c}", "{zone: c}"},
		{"Node n1 leaves first", func() { x.RemoveNode("n1") }, "", "topologyKeys [zone] were not found on any nodes"},
		{"then its CSINode", func() { x.RemoveCSINode("n1") }, "", `no available topology found: no CSINode lists topology keys of driver "d"`},
		{"and the last CSINode", func() { x.RemoveCSINode("n2") }, "", `no available topology found: no CSINode lists topology keys of driver "d"`},
	} {
		step.do()
		if d := cmp.Diff(step.segments, segments(x)); d != "" {
			t.Errorf("%s: segments %s", step.name, d)
		}
		if d := cmp.Diff(step.immediate, immediate(x)); d != "" {
			t.Errorf("%s: immediate %s", step.name, d)
		}
	}
	if len(x.nodes) != 0 || len(x.sets) != 0 {
		t.Errorf("B065: %d nodes and %d sets stay behind", len(x.nodes), len(x.sets))
	}
}

// Nodes of a rolling update of the driver announce different keys; each is served by its own, and no
// choice is left to chance.
func TestMixedKeys(t *testing.T) {
	x := NewIndex()
	for i := range 4 {
		name := fmt.Sprintf("n%d", i)
		x.SetNode(name, map[string]string{"zone": fmt.Sprint(i % 2), "host": name})
		if i < 2 {
			x.SetDriverKeys(name, []string{"zone"})
		} else {
			x.SetDriverKeys(name, []string{"host"})
		}
	}
	for range 20 {
		if got, want := immediate(x), "{host: n2} {host: n3} {zone: 0} {zone: 1}"; got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
	got, err := x.Requirement(Question{Node: "n0"})
	if want := "{zone: 0} {zone: 1}"; err != nil || show(got.Requirement.Preferred) != want {
		t.Errorf("got %s, %v", show(got.Requirement.GetPreferred()), err)
	}
	got, err = x.Requirement(Question{Node: "n3"})
	if want := "{host: n3} {host: n0} {host: n1} {host: n2}"; err != nil || show(got.Requirement.Preferred) != want {
		t.Errorf("got %s, %v", show(got.Requirement.GetPreferred()), err)
	}
}

// The aggregate after any history must be the one of a fresh index that saw only the end.
func TestIncrementsAgreeWithTheWhole(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	x := NewIndex()
	for range 3000 {
		name := fmt.Sprintf("n%d", random.IntN(6))
		switch random.IntN(6) {
		case 0:
			x.RemoveNode(name)
		case 1:
			x.RemoveDriver(name)
		case 2:
			x.RemoveCSINode(name)
		case 3, 4:
			x.SetNode(name, parse([]string{"zone=a", "zone=b", "zone=a,rack=1", "rack=2", ""}[random.IntN(5)]))
		case 5:
			x.SetDriverKeys(name, [][]string{{"zone"}, {"rack", "zone"}, nil}[random.IntN(3)])
		}
		fresh := NewIndex()
		for name, n := range x.nodes {
			if n.known {
				fresh.SetNode(name, n.labels)
			}
			if n.registered {
				fresh.SetDriverKeys(name, n.keys)
			}
		}
		if segments(x) != segments(fresh) || immediate(x) != immediate(fresh) {
			t.Fatalf("%s | %s, fresh %s | %s", segments(x), immediate(x), segments(fresh), immediate(fresh))
		}
		for name := range x.nodes {
			got, err := x.Requirement(Question{Node: name})
			want, wantErr := fresh.Requirement(Question{Node: name})
			if show(got.Requirement.GetPreferred()) != show(want.Requirement.GetPreferred()) || (err == nil) != (wantErr == nil) {
				t.Fatalf("%s: %v %v, fresh %v %v", name, got, err, want, wantErr)
			}
		}
	}
}

// PW-17: what many read is never sorted in place.
func TestManyGoroutines(t *testing.T) {
	x := cluster([]string{"zone"}, zones...)
	keys := []string{"zone", "rack"}
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			for j := range 300 {
				x.SetNode("n1", parse(fmt.Sprintf("zone=%d,rack=%d", j%3, i)))
				x.SetDriverKeys("n5", keys)
				if got, err := x.Requirement(Question{Node: "n2"}); err != nil || len(got.Requirement.Preferred) == 0 {
					t.Error(err)
				}
				immediate(x)
				x.RemoveCSINode("n5")
				x.Segments()
				x.Labels("n1")
			}
		})
	}
	group.Wait()
	if !slices.Equal(keys, []string{"zone", "rack"}) {
		t.Error("W17: the caller's keys were sorted in place")
	}
}

func TestLabels(t *testing.T) {
	x := cluster([]string{"zone"}, "n1 zone=a")
	if labels, ok := x.Labels("n1"); !ok || labels["zone"] != "a" {
		t.Error(labels, ok)
	}
	if _, ok := x.Labels("n2"); ok {
		t.Error("a node out of nothing")
	}
}
