// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// Write writes the explanation, for programs if the format is json, else for people.
func (r *Report) Write(out io.Writer, format string) error {
	if format != "json" {
		return r.writeText(out)
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r)
}

func (r *Report) writeText(out io.Writer) error {
	p := &page80{advice: r.advice()}
	p.line("%s", r.Object.title())
	p.facts(r.Object.State)
	p.line("")
	p.line("Driver %s", strings.TrimSpace(named(r.Driver.Name)+" "+r.Driver.Version))
	p.item("  ", r.Driver.Source)
	for _, s := range r.Driver.Sidecars {
		p.item("  ", s)
	}
	for _, m := range r.Machines {
		p.machine(m)
	}
	p.rooms(r.Room)
	p.users(r.Users)
	if len(r.Holders) > 0 {
		p.line("\nFinalizers")
		for i, h := range r.Holders {
			p.line("  %s", h.Finalizer)
			if i+1 < len(r.Holders) && r.Holders[i+1].Object == h.Object && r.Holders[i+1].Lifted == h.Lifted {
				continue // the next one has the same words
			}
			p.item("    ", fmt.Sprintf("on %s; lifted by %s", h.Object, h.Lifted))
		}
	}
	if len(r.Events) > 0 {
		p.line("\nLast events")
		for _, e := range r.Events {
			p.item("  ", fmt.Sprintf("%s ago: %s %s, %s: %s", e.Age, e.Type, e.Reason, e.Object, p.once(e.Message)))
		}
	}
	if len(r.Notes) > 0 {
		p.line("\nTo know")
		for _, n := range r.Notes {
			p.item("  - ", n)
		}
	}
	_, err := io.WriteString(out, strings.Map(readable, p.String()))
	return err
}

// readable keeps from a terminal what would command it instead of being read: events and annotations are written by whoever
// may write in a namespace, and this is read by those who may do more.
func readable(r rune) rune {
	if r == '\n' || unicode.IsGraphic(r) {
		return r
	}
	return unicode.ReplacementChar
}

func named(name string) string {
	if name == "" {
		return "(not known)"
	}
	return name
}

func (o Object) title() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// page80 is a text whose long lines are broken between words.
type page80 struct {
	strings.Builder
	// advice has lines of its own, and what was said is not said again: see once.
	advice, said []string
}

func (p *page80) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// width is where lines are broken, which pastes well into reports.
const width = 100

// item writes a text whose lines after the first are indented as deep as the first.
func (p *page80) item(head, text string) {
	indent := strings.Repeat(" ", len(head))
	line := head
	empty := true
	for word := range strings.FieldsSeq(text) {
		if !empty && len(line)+1+len(word) > width {
			p.line("%s", line)
			line, empty = indent, true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	p.line("%s", line)
}

func (p *page80) facts(facts []Fact) {
	longest := 0
	for _, f := range facts {
		longest = max(longest, len(f.Name))
	}
	for _, f := range facts {
		value := f.Value
		if f.Name == errorInStatus {
			value = p.once(value)
		}
		p.item(fmt.Sprintf("  %-*s  ", longest, f.Name), value)
	}
}

func (p *page80) machine(m Machine) {
	p.line("\nWhat the %s would do with %s", m.Program, m.Object.title())
	p.facts(m.Object.State)
	for _, b := range m.Before {
		p.item("  first: ", b)
	}
	text := p.once(m.Sentence)
	if text == asAbove {
		text = m.Sentence // two programs do the same
	}
	if m.Step != "" {
		text += "  [" + m.Step + "]"
	}
	p.item("  -> ", text)
	if m.Event != "" && !strings.Contains(m.Sentence, p.withoutAdvice(m.Event)) {
		p.item("  event: ", p.once(m.Event))
	}
	for _, h := range m.Hindrances {
		p.item("  in the way: ", p.once(h))
	}
	for _, a := range m.Advice {
		p.item("  what helps: ", a)
	}
	p.request(m.Request)
	for _, d := range m.Doubts {
		p.item("  decided without knowing: ", d)
	}
}

func (p *page80) request(r *Request) {
	if r == nil {
		return
	}
	var facts []Fact
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, Fact{"  " + name, value})
		}
	}
	add("name", r.Name)
	add("of", r.Handle)
	if r.Bytes > 0 {
		add("bytes", fmt.Sprint(r.Bytes))
	}
	add("capabilities", strings.Join(r.Capabilities, "; "))
	add("from", r.Source)
	add("parameters", pairs(r.Parameters))
	add("mutable parameters", pairs(r.Mutable))
	add("requisite", few(r.Requisite))
	add("preferred", few(r.Preferred))
	add("secret", r.Secret)
	add("but", strings.Join(r.Warnings, "; "))
	p.line("  %s", r.Call)
	p.facts(facts)
}

func pairs(m map[string]string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		all = append(all, key+"="+m[key])
	}
	return strings.Join(all, " ")
}

// shown is how many places of a requirement a person wants to read.
const shown = 8

func few(list []string) string {
	if len(list) <= shown {
		return strings.Join(list, " | ")
	}
	return fmt.Sprintf("%s | and %d more", strings.Join(list[:shown], " | "), len(list)-shown)
}
