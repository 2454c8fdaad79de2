// SPDX-License-Identifier: Apache-2.0

// Package operations owns docs/operations.md: every event and every error text of the programs, with cause and
// remedy. The texts and the advice behind them are read from the code, so that the page cannot say something else than
// the programs do; the table in table.txt adds what they leave to be known.
//
// It must not be imported by anything: it is for the test that writes and checks the page.
//
// In the walks it stands beside: whoever adds a text that users see is told here that it has no cause and no remedy.
package operations

import (
	"fmt"
	"strings"
)

// Entry is one text, and what is to be known of it. What is empty is that of its group.
type Entry struct{ Text, Cause, Remedy string }

// Group is a part of the page.
type Group struct {
	Title, Intro  string
	Cause, Remedy string
	Entries       []Entry
}

// Event is one reason of events.
type Event struct{ Reason, Type, Object, Program, Meaning, Remedy string }

// Table is what stands in table.txt: lines that begin with
//
//	=  the title of a group, and the lines below it up to the next mark its introduction
//	-  a text, as the code has it
//	?  the cause of the text above, or of all texts of the group
//	!  the remedy, likewise
//	*  an event: reason | type | object | program | what it means | what helps
type Table struct {
	// Head is what stands before the first group.
	Head   string
	Events []Event
	Groups []Group
}

func parse(src string) (Table, error) {
	var t Table
	for i, line := range strings.Split(src, "\n") {
		mark, rest, _ := strings.Cut(line, " ")
		var err error
		switch mark {
		case "=":
			t.Groups = append(t.Groups, Group{Title: rest})
		case "-", "?", "!":
			err = t.add(mark, rest)
		case "*":
			err = t.addEvent(rest)
		default:
			t.addProse(line)
		}
		if err != nil {
			return t, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return t, nil
}

func (t *Table) add(mark, rest string) error {
	if len(t.Groups) == 0 {
		return fmt.Errorf("%q belongs to no group", rest)
	}
	g := &t.Groups[len(t.Groups)-1]
	if mark == "-" {
		g.Entries = append(g.Entries, Entry{Text: rest})
		return nil
	}
	cause, remedy := &g.Cause, &g.Remedy
	if len(g.Entries) > 0 {
		last := &g.Entries[len(g.Entries)-1]
		cause, remedy = &last.Cause, &last.Remedy
	}
	if mark == "!" {
		cause = remedy
	}
	if *cause != "" {
		return fmt.Errorf("%q is said twice of one text", rest)
	}
	*cause = rest
	return nil
}

func (t *Table) addEvent(rest string) error {
	cells := strings.Split(rest, " | ")
	if len(cells) != 6 {
		return fmt.Errorf("%d cells of an event, and there are 6", len(cells))
	}
	t.Events = append(t.Events, Event{cells[0], cells[1], cells[2], cells[3], cells[4], cells[5]})
	return nil
}

func (t *Table) addProse(line string) {
	if len(t.Groups) == 0 {
		t.Head += line + "\n"
		return
	}
	g := &t.Groups[len(t.Groups)-1]
	if len(g.Entries) == 0 {
		g.Intro += line + "\n"
	}
}

// render makes the page of a table and the advice that the code has.
func render(t Table, advice map[string]string) string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(t.Head) + "\n\n## Events\n\n| reason | type | of | from | what it means | what helps |\n|---|---|---|---|---|---|\n")
	for _, e := range t.Events {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", e.Reason, e.Type, e.Object, e.Program, e.Meaning, e.Remedy)
	}
	for _, g := range t.Groups {
		fmt.Fprintf(&b, "\n## %s\n\n", g.Title)
		if strings.TrimSpace(g.Intro) != "" {
			b.WriteString(strings.TrimSpace(g.Intro) + "\n\n")
		}
		if g.Cause != "" && g.Remedy != "" {
			fmt.Fprintf(&b, "Unless something else is said: %s *What helps:* %s\n\n", g.Cause, g.Remedy)
		}
		for _, e := range g.Entries {
			fmt.Fprintf(&b, "- `%s`\n", shown(e.Text))
			if said := explained(e, advice[e.Text]); said != "" {
				fmt.Fprintf(&b, "  %s\n", said)
			}
		}
	}
	return b.String()
}

// explained is what is said of one text: what the code advises itself comes before the rest.
func explained(e Entry, advice string) string {
	var parts []string
	if e.Cause != "" {
		parts = append(parts, e.Cause)
	}
	if isTelling(advice) {
		parts = append(parts, "*The message goes on:* "+shown(advice)+".")
	}
	if e.Remedy != "" {
		parts = append(parts, "*What helps:* "+e.Remedy)
	}
	return strings.Join(parts, " ")
}

// shown puts an ellipsis where the code puts a value.
func shown(format string) string {
	return strings.ReplaceAll(verb.ReplaceAllString(format, "…"), "%%", "%")
}
