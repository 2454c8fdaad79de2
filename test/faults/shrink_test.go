// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"
)

// reduce leaves out of the items whatever can be left out while the rest still fails: halves first, then smaller parts. It
// gives up leaving out when there is no time for more, and what it has by then fails as well.
func reduce(items []string, hasTime func() bool, fails func([]string) bool) []string {
	for parts := 2; len(items) > 1 && hasTime(); {
		size := (len(items) + parts - 1) / parts
		isSmaller := false
		for from := 0; from < len(items) && hasTime(); from += size {
			rest := slices.Concat(items[:from], items[min(len(items), from+size):])
			if len(rest) > 0 && fails(rest) {
				items, isSmaller = rest, true
				break
			}
		}
		switch {
		case isSmaller:
			parts = max(2, parts-1)
		case size == 1:
			return items
		default:
			parts = min(len(items), 2*parts)
		}
	}
	return items
}

func TestReduce(t *testing.T) {
	var all []string
	for n := range 100 {
		all = append(all, fmt.Sprint("o", n))
	}
	for _, tt := range []struct {
		name   string
		needed []string
	}{
		{"one", []string{"o42"}}, {"the first", []string{"o0"}}, {"the last", []string{"o99"}}, {"some, far apart", []string{"o3", "o50", "o51", "o97"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tries := 0
			got := reduce(all, func() bool { return true }, func(items []string) bool {
				tries++
				return !slices.ContainsFunc(tt.needed, func(n string) bool { return !slices.Contains(items, n) })
			})
			if !slices.Equal(got, tt.needed) || tries > 300 {
				t.Errorf("got %q after %d tries, want %q", got, tries, tt.needed)
			}
		})
	}
	left := 3
	got := reduce(all, func() bool { left--; return left >= 0 }, func(items []string) bool { return slices.Contains(items, "o7") })
	if !slices.Contains(got, "o7") || len(got) == len(all) {
		t.Errorf("without time for more: %q", got)
	}
}

func TestItems(t *testing.T) {
	s := write(7, 60)
	if again := write(7, 60); !reflect.DeepEqual(s, again) {
		t.Error("the same seed writes another script")
	}
	if other := write(8, 60); reflect.DeepEqual(s, other) {
		t.Error("another seed writes the same script")
	}
	items := s.items()
	back, err := expand(compress(items))
	if err != nil || !slices.Equal(back, items) {
		t.Errorf("%s became %q, %v", compress(items), back, err)
	}
	if got := compress([]string{"o1", "o2", "o3", "o5", "a6", "a7", "k1"}); got != "o1-o3,o5,a6-a7,k1" {
		t.Errorf("got %s", got)
	}
	for _, bad := range []string{"", "x1", "o3-o1", "o1-a2", "o", "o1,,o2"} {
		if items, err := expand(bad); err == nil {
			t.Errorf("%q is %q", bad, items)
		}
	}
	kept := s.only([]string{"o50", "o51", "a1", s.blows[len(s.blows)-1].id})
	if len(kept.lives) != 2 || len(kept.blows) != 2 {
		t.Fatalf("kept %+v", kept)
	}
	if kept.lives[0].at != lead || kept.lives[1].at-kept.lives[0].at != s.lives[50].at-s.lives[49].at {
		t.Errorf("the times are %s and %s", kept.lives[0].at, kept.lives[1].at)
	}
	for _, l := range s.lives {
		family := s.withAncestors([]string{l.id})
		if l.from != "" && !slices.Contains(family, l.from) || !slices.Contains(family, l.id) {
			t.Errorf("the family of %+v is %q", l, family)
		}
	}
}

// replay is the command that plays a part of a run.
func replay(s plot, count int, items []string) string {
	return fmt.Sprintf("%s=%d %s=%d %s=%s make faults", seedVariable, s.seed, objectsVariable, count, keepVariable, compress(items))
}

// deadline makes a question of a time.
func deadline(d time.Duration) func() bool {
	end := time.Now().Add(d)
	return func() bool { return time.Now().Before(end) }
}
