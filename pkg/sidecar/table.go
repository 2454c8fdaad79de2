// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"flag"
	"fmt"
	"io"
	"strings"
)

// help prints all flags in their groups.
func (p *process) help(out io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "Usage: %s [--flag=value ...]\n", p.name)
	for _, c := range p.Commands {
		fmt.Fprintf(&text, "       %s %s [--flag=value ...] %s\n           %s\n", p.name, c.Name, c.Object, c.Summary)
	}
	fmt.Fprintf(&text, "       %s %s bash|zsh|fish\n           Prints what the shell needs to complete commands and flags.\n", p.name, completionName)
	if _, err := io.WriteString(out, text.String()); err != nil {
		return err
	}
	return p.helpGroups(out)
}

// helpGroups describes all flags.
func (p *process) helpGroups(out io.Writer) error {
	var text strings.Builder
	for _, g := range p.groups {
		fmt.Fprintf(&text, "\n%s:\n", g.title)
		for _, f := range g.flags {
			kind, usage := flag.UnquoteUsage(f)
			fmt.Fprintf(&text, "  %s", dashed(f.Name))
			if kind != "" {
				fmt.Fprintf(&text, " %s", kind)
			}
			if shown := defaultOf(f); shown != "" {
				fmt.Fprintf(&text, " (default %s)", shown)
			}
			fmt.Fprintf(&text, "\n      %s\n", usage)
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// defaultOf is the default as one would write it, empty for the empty text and for switches that are off.
func defaultOf(f *flag.Flag) string {
	if f.DefValue == "false" && typeOf(f) == "bool" {
		return ""
	}
	// Durations print their zero parts: 5m0s.
	if typeOf(f) == "duration" {
		short := f.DefValue
		if strings.HasSuffix(short, "m0s") {
			short = strings.TrimSuffix(short, "0s")
		}
		if strings.HasSuffix(short, "h0m") {
			short = strings.TrimSuffix(short, "0m")
		}
		return short
	}
	return f.DefValue
}

// FlagTable renders all flags of a program as Markdown tables, one for each group.
func FlagTable(program Program) string {
	p := newProcess(program, io.Discard, io.Discard)
	var text strings.Builder
	for _, g := range p.groups {
		fmt.Fprintf(&text, "\n**%s**\n\n| Flag | Default | Meaning |\n|---|---|---|\n", g.title)
		for _, f := range g.flags {
			_, usage := flag.UnquoteUsage(f)
			shown := defaultOf(f)
			if shown != "" {
				shown = "`" + shown + "`"
			}
			fmt.Fprintf(&text, "| `--%s` | %s | %s |\n", f.Name, shown, strings.ReplaceAll(usage, "|", "\\|"))
		}
	}
	return text.String() + "\n"
}

// ReplaceTable puts a table between the markers of a program in a document; found is false when the
// document has no such markers.
func ReplaceTable(document, program, table string) (replaced string, found bool) {
	begin, end := "<!-- flags:"+program+" -->\n", "<!-- /flags -->"
	before, rest, ok := strings.Cut(document, begin)
	if !ok {
		return document, false
	}
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		return document, false
	}
	return before + begin + table + end + after, true
}

// Declared is one flag as the program knows it.
type Declared struct{ Name, Type, Default string }

// FlagList lists all flags of a program by name.
func FlagList(program Program) []Declared {
	var all []Declared
	newProcess(program, io.Discard, io.Discard).flags.VisitAll(func(f *flag.Flag) {
		all = append(all, Declared{f.Name, typeOf(f), f.DefValue})
	})
	return all
}
