// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

func failed(results []result) int {
	sum := 0
	for _, r := range results {
		sum += r.failed
	}
	return sum
}

// report ends a run: the table for people, the counts alone on a line for machines, the verdict last.
func report(out io.Writer, title string, results []result) {
	passed, skipped := 0, 0
	var took time.Duration
	var bad []string
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "step\tverdict\tpassed\tfailed\tskipped\ttime\tnote")
	for _, r := range results {
		verdict := "ok"
		if r.failed > 0 {
			verdict = "FAILED"
			bad = append(bad, r.step.name)
		}
		passed, skipped, took = passed+r.passed, skipped+r.skipped, took+r.took
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%s\t%s\n",
			r.step.name, verdict, r.passed, r.failed, r.skipped, r.took.Round(100*time.Millisecond), oneLine(r.note))
	}
	_ = table.Flush() // A terminal that is gone has nobody to tell.
	fmt.Fprintf(out, "\n%d passed, %d failed\n", passed, failed(results))
	if len(bad) == 0 {
		text := fmt.Sprintf("%s, %s in %s", title, count(len(results), "step"), took.Round(time.Second))
		if skipped > 0 {
			text += ", " + count(skipped, "test") + " skipped"
		}
		fmt.Fprintf(out, "PASS: %s\n", text)
		return
	}
	fmt.Fprintf(out, "FAIL: %s, look above at what stands under \"==> … %s\"\n", title, strings.Join(bad, "\", \""))
}

func count(number int, what string) string {
	if number != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", number, what)
}

// reportInterrupted tells what was known before somebody ended the run. The step in which it ended has no verdict.
func reportInterrupted(out io.Writer, title string, results []result) {
	fmt.Fprintln(out)
	for _, r := range results[:max(0, len(results)-1)] {
		fmt.Fprintf(out, "%s: %d passed, %d failed\n", r.step.name, r.passed, r.failed)
	}
	where := "before its first step"
	if len(results) > 0 {
		where = "in " + results[len(results)-1].step.name
	}
	fmt.Fprintf(out, "interrupted: %s, %s, everything stopped\n", title, where)
}

func oneLine(note string) string {
	first, _, _ := strings.Cut(note, "\n")
	if runes := []rune(first); len(runes) > 100 {
		return string(runes[:100]) + "…"
	}
	return first
}
