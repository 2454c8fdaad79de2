// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// table has a head and lines of as many cells.
type table struct {
	head  []string
	lines [][]string
}

func (t *table) add(cells ...string) { t.lines = append(t.lines, cells) }

// text is for terminals.
func (t *table) text(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	for _, line := range append([][]string{t.head}, t.lines...) {
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	_ = w.Flush() // A terminal that is gone has nobody to tell.
}

// markdown is for documents.
func (t *table) markdown(out io.Writer) {
	fmt.Fprintf(out, "| %s |\n|%s\n", strings.Join(t.head, " | "), strings.Repeat("---|", len(t.head)))
	for _, line := range t.lines {
		fmt.Fprintf(out, "| %s |\n", strings.Join(line, " | "))
	}
}

// summary has a line for each phase.
func (r *Result) summary(isOwn bool) *table {
	t := &table{head: []string{"phase", "objects/s", "p50", "p99", "bound/s", "p50", "p99", "writes", "reads", "409", "driver calls"}}
	for _, program := range r.Programs {
		t.head = append(t.head, program+" CPU", "peak")
	}
	t.head = append(t.head, "API server CPU", "controllers CPU")
	for _, row := range r.Rows {
		cells := append([]string{row.Phase}, row.Done.cells()...)
		if row.Bound != nil {
			cells = append(cells, row.Bound.cells()...)
		} else {
			cells = append(cells, "", "", "")
		}
		cells = append(cells, row.requestCells(isOwn)...)
		for _, program := range r.Programs {
			cost, ran := row.Programs[program]
			if !ran {
				cells = append(cells, "", "")
				continue
			}
			cells = append(cells, fmt.Sprintf("%.2fs", cost.Seconds), fmt.Sprintf("%.0fMi", cost.Peak))
		}
		t.add(append(cells, fmt.Sprintf("%.1fs", row.ControlPlane["kube-apiserver"]), fmt.Sprintf("%.1fs", row.ControlPlane["kube-controller-manager"]))...)
	}
	return t
}

func (p Pace) cells() []string {
	return []string{fmt.Sprintf("%.0f", p.Rate), seconds(p.P50), seconds(p.P99)}
}

func seconds(s float64) string {
	if s < 1 {
		return fmt.Sprintf("%.0fms", s*1000)
	}
	return fmt.Sprintf("%.2fs", s)
}

func (r Row) requestCells(isOwn bool) []string {
	if len(r.Programs) == 0 {
		return []string{"", "", "", ""}
	}
	writes, reads := fmt.Sprintf("%.2f", r.writes()), fmt.Sprintf("%.2f", r.reads())
	if limit, known := budgetOf(r.Phase); known && isOwn {
		writes += fmt.Sprintf(" (≤ %.1f)", limit.writes)
		if limit.reads >= 0 {
			reads += fmt.Sprintf(" (≤ %.4g)", limit.reads)
		}
	}
	calls := fmt.Sprintf("%.2f", r.Calls)
	if r.CallsMost > 1 {
		calls += fmt.Sprintf(" (one had %d)", r.CallsMost)
	}
	return []string{writes, reads, fmt.Sprintf("%.2f", r.conflicts()), calls}
}

// detail says who asked for what.
func (r *Result) detail() *table {
	t := &table{head: []string{"phase", "client", "writes for each object", "reads", "answered 409"}}
	for _, row := range r.Rows {
		for _, program := range r.Programs {
			cost, ran := row.Programs[program]
			if !ran || cost.Requests.sum() == 0 {
				continue
			}
			client := program
			if cost.Requests.Agent != "" {
				client += " (" + cost.Requests.Agent + ")"
			}
			t.add(row.Phase, client, list(cost.Requests.Writes, row.Objects), list(cost.Requests.Reads, row.Objects), list(cost.Requests.Conflicts, row.Objects))
		}
	}
	return t
}

// spent lists requests of one kind by program.
func (r Row) spent(of func(*requests) map[string]int) string {
	var all []string
	for _, program := range slices.Sorted(maps.Keys(r.Programs)) {
		if counts := of(r.Programs[program].Requests); len(counts) > 0 {
			all = append(all, program+" "+list(counts, r.Objects))
		}
	}
	return strings.Join(all, "; ")
}
