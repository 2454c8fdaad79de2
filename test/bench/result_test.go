// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/csi-tandem/csi-tandem/test/controlplane"
)

func TestPace(t *testing.T) {
	zero := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var begins, ends []time.Time
	for i := range 100 {
		// All begin within a second; the first takes 1s, the last 100s.
		begins = append(begins, zero.Add(time.Duration(i)*10*time.Millisecond))
		ends = append(ends, begins[i].Add(time.Duration(i+1)*time.Second))
	}
	got := paceOf(begins, ends)
	if want := (Pace{Rate: 100 / 100.99, P50: 50, P99: 99}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := paceOf(nil, nil); got != (Pace{}) {
		t.Errorf("of nothing: %+v", got)
	}
	if got := quantile([]time.Duration{7}, 0.99); got != 7 {
		t.Errorf("of one: %v", got)
	}
}

func audited(verb, resource, subresource string, code int) controlplane.AuditLine {
	var line controlplane.AuditLine
	line.Verb, line.Object.Resource, line.Object.Subresource, line.Response.Code = verb, resource, subresource, code
	line.User.Username, line.UserAgent = "somebody", "provisioner/v1 (linux/amd64)"
	return line
}

// What is counted decides whether a budget holds: answers 409 are told apart, what a process does to live is nobody's object,
// and a refused write was sent all the same.
func TestLedger(t *testing.T) {
	l := &ledger{user: map[string]*requests{}}
	for _, line := range []controlplane.AuditLine{
		audited("create", "persistentvolumes", "", 201), audited("create", "persistentvolumes", "", 201),
		audited("create", "persistentvolumes", "", 409), audited("patch", "volumesnapshots", "status", 200),
		audited("delete", "persistentvolumes", "", 404), audited("get", "persistentvolumes", "", 200),
		audited("list", "nodes", "", 200), audited("watch", "nodes", "", 200),
		audited("update", "leases", "", 200), audited("create", "selfsubjectaccessreviews", "", 201), audited("get", "", "", 200),
	} {
		l.take(line)
	}
	want := &requests{
		Agent:     "provisioner/v1",
		Writes:    map[string]int{"create persistentvolumes": 2, "patch volumesnapshots/status": 1, "delete persistentvolumes (404)": 1},
		Reads:     map[string]int{"get persistentvolumes": 1, "list nodes": 1},
		Conflicts: map[string]int{"create persistentvolumes": 1},
	}
	if diff := cmp.Diff(want, l.of("somebody")); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if sum := l.of("nobody").sum(); sum != 0 {
		t.Errorf("nobody asked %d times", sum)
	}
}

// frugal is a result within all budgets.
func frugal() *Result {
	r := &Result{Label: "frugal", Machine: "none", Date: "2026-01-01", Programs: []string{"provisioner"}}
	r.Rows = append(r.Rows, Row{Phase: bare, Objects: 100, Done: Pace{Rate: 700}, Bound: &Pace{Rate: 40}})
	for _, limit := range budgets {
		q := newRequests()
		q.Writes["create persistentvolumes"] = int(limit.writes * 100)
		q.Reads["get persistentvolumes"] = int(max(0, limit.reads) * 100)
		q.Conflicts["patch persistentvolumes"] = 1000
		r.Rows = append(r.Rows, Row{
			Phase: limit.phase, Objects: 100, Calls: 1, CallsMost: 1, Done: Pace{Rate: 100, P50: 0.1, P99: 2},
			Programs: map[string]Cost{"provisioner": {Requests: q}},
		})
	}
	return r
}

func TestOverspent(t *testing.T) {
	if faults := overspent(frugal()); len(faults) > 0 {
		t.Errorf("within all budgets: %q", faults)
	}
	for _, tt := range []struct {
		name  string
		spoil func(r *Result)
		want  string
	}{
		{"a write more", func(r *Result) { r.Rows[1].Programs["provisioner"].Requests.Writes["create events"] = 1 }, "create events 0.01"},
		{"a read more", func(r *Result) { r.Rows[5].Programs["provisioner"].Requests.Reads["get nodes"] = 1 }, "get nodes 0.01"},
		{"a call more", func(r *Result) { r.Rows[2].Calls, r.Rows[2].CallsMost = 1.01, 2 }, "1.01 driver calls, and 2"},
		{"a call less", func(r *Result) { r.Rows[2].Calls = 0.99 }, "0.99 driver calls"},
		{"a phase left out", func(r *Result) { r.Rows = r.Rows[:5] }, volumeDeletion + " was not measured"},
	} {
		r := frugal()
		tt.spoil(r)
		if faults := overspent(r); len(faults) != 1 || !strings.Contains(faults[0], tt.want) {
			t.Errorf("%s: got %q, want one that says %q", tt.name, faults, tt.want)
		}
	}
}

// A file of results must give back what it was made of, and one that says nothing must not be taken for results.
func TestResultsAreKept(t *testing.T) {
	content, err := frugal().encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeResult(content)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(frugal(), got, cmp.Comparer(func(a, b *requests) bool {
		one, _ := json.Marshal(a)
		other, _ := json.Marshal(b)
		return string(one) == string(other)
	})); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	for _, text := range []string{"no json", `{"phases": [{"programs": {"provisioner": {}}}]}`} {
		if _, err := decodeResult([]byte(text)); err == nil {
			t.Errorf("%s was taken for results", text)
		}
	}
}

func TestPublishedFigures(t *testing.T) {
	r, err := decodeResult(published)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][2]float64{
		provisioning: {3, 104}, snapshotting: {13.28, 22}, restoring: {5.72, 34}, snapshotDeletion: {6, 33}, volumeDeletion: {2.73, 45},
	}
	for phase, figures := range want {
		row, found := r.row(phase)
		if got := [2]float64{row.writes(), row.Done.Rate}; !found || got[0] < figures[0]-0.001 || got[0] > figures[0]+0.001 || got[1] != figures[1] {
			t.Errorf("%s: got %v, want %v", phase, got, figures)
		}
	}
}
