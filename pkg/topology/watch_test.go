// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWatch(t *testing.T) {
	x := cluster([]string{"zone"}, "n1 zone=a")
	var news []string
	x.Watch(func(segment Segment, exists bool) { news = append(news, fmt.Sprint(segment, " ", exists)) })
	for _, step := range []struct {
		name string
		do   func()
		want string
	}{
		{"what there is", func() {}, "{zone: a} true"},
		{"T93 another node of the segment", func() { x.SetNode("n2", parse("zone=a")); x.SetDriverKeys("n2", []string{"zone"}) }, ""},
		{"T93 a new segment", func() { x.SetNode("n3", parse("zone=b")); x.SetDriverKeys("n3", []string{"zone"}) }, "{zone: b} true"},
		{"T93 key order does not matter", func() { x.SetDriverKeys("n3", []string{"zone", "zone"}) }, ""},
		{"T93 a label changes", func() { x.SetNode("n3", parse("zone=c")) }, "{zone: b} false, {zone: c} true"},
		{"a label that is no key", func() { x.SetNode("n3", parse("zone=c,rack=1")) }, ""},
		{"T93 other keys", func() { x.SetDriverKeys("n3", []string{"zone", "rack"}) }, "{zone: c} false, {rack: 1, zone: c} true"},
		{"T93 the driver leaves one of two", func() { x.RemoveDriver("n1") }, ""},
		{"T93 the last node of a segment", func() { x.RemoveNode("n2") }, "{zone: a} false"},
		{"T93 no CSINode", func() { x.RemoveCSINode("n3") }, "{rack: 1, zone: c} false"},
		{"no keys", func() { x.SetDriverKeys("n3", nil) }, "{} true"},
	} {
		step.do()
		if d := cmp.Diff(step.want, strings.Join(news, ", ")); d != "" {
			t.Errorf("%s: %s", step.name, d)
		}
		news = nil
	}
}

// Whoever only listens knows the same as who asks, whatever has happened.
func TestWatchAgreesWithSegments(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	x := NewIndex()
	heard := map[string]bool{}
	x.Watch(func(segment Segment, exists bool) {
		if heard[segment.String()] == exists {
			t.Fatalf("%s: told %t twice", segment, exists)
		}
		if heard[segment.String()] = exists; !exists {
			delete(heard, segment.String())
		}
	})
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
		var want, got []string
		for _, segment := range x.Segments() {
			want = append(want, segment.String())
		}
		for text := range heard {
			got = append(got, text)
		}
		slices.Sort(want)
		slices.Sort(got)
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	}
}

func TestNodeSegment(t *testing.T) {
	x := cluster([]string{"zone"}, "n1 zone=a")
	if segment, ok := x.NodeSegment("n1"); !ok || segment.String() != "{zone: a}" {
		t.Error(segment, ok)
	}
	x.SetNode("n2", parse("zone=b"))
	for _, name := range []string{"n2", "n3", ""} {
		if segment, ok := x.NodeSegment(name); ok {
			t.Error(name, segment)
		}
	}
}
