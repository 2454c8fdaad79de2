// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"
)

func said(refs []ref) string {
	return strings.Trim(fmt.Sprint(refs), "[]")
}

func TestLeading(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"T35 in order", "T35"},
		{"T39 T36.2 terminating", "T39 T36"},
		{"S41, S42: both orders", "S41 S42"},
		{"B033 T38 T36.10 smaller", "B33 T38 T36"},
		{"S1 and S2", "S1 S2"},
		{"T84..T87 nodes", "T84 T85 T86 T87"},
		{"S79–S81, B043", "S79 S80 S81 B43"},
		{"PW-8 PW9 SW-3 PP-1 W-7 W30 P-2", "PW8 PW9 SW3 PP1 W7 W30 P2"},
		{"T48 ", "T48"},
		{"W17: sorted", "W17"},
		// What is no id, or none in front.
		{"", ""},
		{"T1", ""},
		{"T35x", ""},
		{"T1000", ""},
		{"B33", ""},
		{"P1", ""},
		{"S-3", ""},
		{"S3_bucket", ""},
		{"the walk of T35", ""},
		{"T87..T84", "T87"},
		{"S1..S99", "S1"},
	} {
		t.Run(c.in, func(t *testing.T) {
			if refs, _ := leading(c.in); said(refs) != c.want {
				t.Errorf("got %s, want %s", said(refs), c.want)
			}
		})
	}
}

func TestInName(t *testing.T) {
	for in, want := range map[string]string{
		"TestT35Restore":      "T35",
		"TestS1S2B003":        "S1 S2 B3",
		"TestRestore_T35_S41": "T35 S41",
		"TestKillB003":        "B3",
		"TestPW8NoVolume":     "PW8",
		"TestSW8":             "SW8",
		"FuzzW7":              "W7",
		"TestHTTPS443":        "",
		"TestS3bucket":        "",
		"TestT1":              "",
		"TestRestore":         "",
	} {
		if got := said(inName(in)); got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

func TestInComment(t *testing.T) {
	for in, want := range map[string]string{
		"T59: every code":                              "T59",
		"T35, T36: restore":                            "T35 T36",
		"TestThief (B007, S44, S45): gets nothing.":    "B7 S44 S45",
		"The whole (spec parts 0 and 3.5.3;\nS1, S2).": "S1 S2",
		"It does (more, see T42), and (T53).":          "T42 T53",
		"unlike T35 and S3 this is not named":          "",
		"T35 without a colon":                          "",
		"(GPT-T35, XS3)":                               "",
		"TestKill (R34 with real processes): whenever": "",
	} {
		if got := said(inComment(in)); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestResolve(t *testing.T) {
	for _, c := range []struct {
		in        string
		dir, want string
	}{
		{"T7", "pkg/provision", ""},
		{"T07", "test/e2e", "T07"},
		{"S007", "test/e2e", "S7"},
		{"B007", "test/e2e", "B007"},
		{"W8", "pkg/provision", "PW-8"},
		{"W-8", "pkg/controller/claim", "PW-8"},
		{"W8", "pkg/snapshot", "SW-8"},
		{"P-8", "pkg/topology", "PP-8"},
		{"PW8", "pkg/snapshot", "PW-8"},
		{"W8", "test/e2e", ""},
		{"P-8", "pkg/snapshot", ""},
	} {
		r, _, ok := nextRef(c.in)
		got := ""
		if ok {
			got = r.in(c.dir)
		}
		if got != c.want {
			t.Errorf("%s in %s: got %q, want %q", c.in, c.dir, got, c.want)
		}
	}
}
