// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The numbers of a group have no gaps, except for the field faults, which have the odd ones.
func TestListIsWhole(t *testing.T) {
	all, err := load()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, g := range groups {
		last := map[string]int{"T": 106, "S": 102, "B": 89, "PW": 31, "PP": 13, "SW": 32}[g.prefix]
		step := map[bool]int{true: 2, false: 1}[g.prefix == "B"]
		for n := 1; n <= last; n += step {
			want = append(want, fmt.Sprintf(g.format, n))
		}
	}
	var got []string
	for _, c := range all {
		got = append(got, c.id)
		if len([]rune(c.says)) > 80 {
			t.Errorf("%s says more than a line", c.id)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestParseList(t *testing.T) {
	for name, c := range map[string]struct{ in, wrong string }{
		"as it should be": {"T01\tone\nT02\ttwo\tn/a: the interface has no such call at all\n", ""},
		"no words":        {"T01\n", "is not id, words"},
		"empty words":     {"T01\t \n", "is not id, words"},
		"too much":        {"T01\ta\tb\tc\n", "is not id, words"},
		"empty line":      {"T01\ta\n\n", "line 2"},
		"twice":           {"T01\ta\nT01\tb\n", "T01 is there twice"},
		"other spelling":  {"T001\ta\n", "not an id of the group T"},
		"other group":     {"S1\ta\n", "not an id of the group T"},
		"no reason":       {"T01\ta\tn/a\n", "no sentence says why"},
		"short reason":    {"T01\ta\tn/a: no\n", "no sentence says why"},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := parseList(groups[0], c.in)
			if c.wrong == "" && (err != nil || len(all) != 2 || !strings.HasPrefix(all[1].reason, "the interface")) {
				t.Errorf("got %+v, %v", all, err)
			}
			if c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
				t.Errorf("got error %v, want %q", err, c.wrong)
			}
		})
	}
}

func TestChoose(t *testing.T) {
	all, err := load()
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"T35,S4":    "T35 S4",
		"S100, S10": "S10 S100",
		"T10":       "T10",
		"B00":       "B001 B003 B005 B007 B009",
		"PW8":       "PW-8",
		"PW-3":      "PW-3",
		"PP-1,B08":  "B081 B083 B085 B087 B089 PP-1",
		"T999":      "error",
		"T35,":      "error",
		"X":         "error",
	} {
		chosen, err := choose(all, in)
		var ids []string
		for _, c := range chosen {
			ids = append(ids, c.id)
		}
		if err != nil {
			ids = []string{"error"}
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
	for in, want := range map[string]int{"": len(all), "T": 106, "PW,SW": 63} {
		if chosen, err := choose(all, in); err != nil || len(chosen) != want {
			t.Errorf("%q: got %d cases, %v; want %d", in, len(chosen), err, want)
		}
	}
}
