// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Levels say how much of the whole a test has under it.
const (
	levelTable    = "table"
	levelRoom     = "room"
	levelEndToEnd = "e2e"
	levelOther    = "other"
)

func levelOf(dir string) string {
	for _, l := range []struct{ tree, level string }{
		{"test/e2e", levelEndToEnd}, {"test/bench", levelEndToEnd}, {"test/controlplane", levelEndToEnd}, {"test/faults", levelEndToEnd},
		{"pkg/controller", levelRoom}, {"pkg/sidecar", levelRoom}, {"cmd", levelRoom},
		{"pkg", levelTable},
	} {
		if dir == l.tree || strings.HasPrefix(dir, l.tree+"/") {
			return l.level
		}
	}
	return levelOther
}

// row is one case with all that is known about it.
type row struct {
	listed
	result string
	places []place
}

// place is one test function, with the rows of it that name the case.
type place struct {
	mention
	rows   int
	result string
}

func judge(selected []listed, places map[string][]mention, ran *outcomes) []row {
	rows := make([]row, 0, len(selected))
	for _, c := range selected {
		r := row{listed: c, places: gather(places[c.id], ran)}
		var results []string
		for _, p := range r.places {
			results = append(results, p.result)
		}
		r.result = worst(results)
		if r.result == resultNone && c.reason != "" {
			r.result = resultInvalid
		}
		rows = append(rows, r)
	}
	return rows
}

// gather puts the rows of one test together: they say the same thing of different inputs.
func gather(mentions []mention, ran *outcomes) []place {
	var places []place
	index := map[string]int{}
	for _, m := range mentions {
		key := m.dir + " " + strings.Join(m.tests, " ")
		result := ran.of(m)
		i, ok := index[key]
		if !ok {
			index[key] = len(places)
			places = append(places, place{mention: m, rows: 1, result: result})
			continue
		}
		places[i].rows++
		places[i].result = worst([]string{places[i].result, result})
	}
	return places
}

func (p place) name() string {
	name := p.tests[0]
	switch {
	case p.rows > 1:
		name += fmt.Sprintf(" (%d places)", p.rows)
	case p.about.isName:
		name += "/" + shorten(p.about.text)
	}
	if more := len(p.tests) - 1; more > 0 {
		name += fmt.Sprintf(" and %d more", more)
	}
	return name
}

const maxName = 60

func shorten(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	if runes := []rune(text); len(runes) > maxName {
		return string(runes[:maxName]) + "…"
	}
	return text
}

// writeTable: the place comes last, since it is as long as it is. A case that is tested in several places has a line for each.
func writeTable(out io.Writer, rows []row) {
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "case\tsays\tresult\tlevel\twhere")
	for _, r := range rows {
		if len(r.places) == 0 {
			fmt.Fprintf(table, "%s\t%s\t%s\t\t%s\n", r.id, r.says, r.result, r.reason)
		}
		id, says := r.id, r.says
		for _, p := range r.places {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s %s\n", id, says, p.result, levelOf(p.dir), p.at(), p.name())
			id, says = "", ""
		}
	}
	_ = table.Flush() // A terminal that is gone has nobody to tell.
}

// writeSummary ends with a line for each group.
func writeSummary(out io.Writer, rows []row) {
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	for _, g := range groups {
		count := map[string]int{}
		cases := 0
		for _, r := range rows {
			if r.group == g.prefix {
				count[r.result]++
				cases++
			}
		}
		if cases == 0 {
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%d cases:\t%d passed,\t%d failed,\t%d not run,\t%d without a test,\t%d n/a\n", g.prefix, g.title, cases,
			count[resultPassed], count[resultFailed], count[resultNotRun], count[resultNone], count[resultInvalid])
	}
	_ = table.Flush()
}
