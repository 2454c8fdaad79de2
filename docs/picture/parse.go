// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// drawing is what a text says.
type drawing struct {
	title, section string
	lanes          []lane
	rows           []row
	boxes          []box
	links          []row
	// told is the same as sentences.
	told []string
	// effects are what is done to API server and driver, in order. They are not shown.
	effects []effect
}

// effect is one request or call that a line stands for, and the section it is in.
type effect struct{ section, what string }

// lane is a part that takes part in a walk.
type lane struct{ id, name string }

// row is one thing that happens: a message, a note, or the beginning of a section, which has neither end.
type row struct {
	from, to string
	// answer is drawn with dashes.
	answer bool
	text   string
}

// box stands in a grid, counted from 0.
type box struct {
	id       string
	col, row int
	text     string
	// note boxes look like notes.
	note bool
}

// kinds are the lines that there are, each with what it does to the drawing.
var kinds = []struct {
	form *regexp.Regexp
	take func(*drawing, []string) error
}{
	{regexp.MustCompile(`^title (.+)$`), func(d *drawing, m []string) error {
		d.title = m[1]
		return nil
	}},
	{regexp.MustCompile(`^lane (\w+) (.+)$`), func(d *drawing, m []string) error {
		if d.has(m[1]) {
			return fmt.Errorf("%s is there already", m[1])
		}
		d.lanes = append(d.lanes, lane{m[1], m[2]})
		return nil
	}},
	{regexp.MustCompile(`^(box|note) (\w+) at (\d),(\d): (.+)$`), func(d *drawing, m []string) error {
		if d.has(m[2]) {
			return fmt.Errorf("%s is there already", m[2])
		}
		d.boxes = append(d.boxes, box{id: m[2], col: int(m[3][0] - '0'), row: int(m[4][0] - '0'), text: m[5], note: m[1] == "note"})
		d.told = append(d.told, flat(m[5]))
		return nil
	}},
	{regexp.MustCompile(`^(\w+) (->|\.>) (\w+): (.+)$`), (*drawing).takeLink},
	{regexp.MustCompile(`^note (\w+)(?:,(\w+))?: (.+)$`), (*drawing).takeNote},
	{regexp.MustCompile(`^== (.+)$`), func(d *drawing, m []string) error {
		d.rows, d.section = append(d.rows, row{text: m[1]}), m[1]
		d.told = append(d.told, flat(m[1]))
		return nil
	}},
}

func (d *drawing) takeLink(m []string) error {
	r := row{from: m[1], to: m[3], answer: m[2] == ".>", text: m[4]}
	for _, id := range []string{r.from, r.to} {
		if !d.has(id) {
			return fmt.Errorf("there is no %s", id)
		}
	}
	d.told = append(d.told, fmt.Sprintf("%s to %s: %s", d.nameOf(r.from), d.nameOf(r.to), flat(r.text)))
	if len(d.boxes) > 0 {
		d.links = append(d.links, r)
		return nil
	}
	d.rows = append(d.rows, r)
	return nil
}

// takeNote: a note stands over one lane, or over all from one to another.
func (d *drawing) takeNote(m []string) error {
	until := m[2]
	if until == "" {
		until = m[1]
	}
	from, to := d.laneOf(m[1]), d.laneOf(until)
	if from < 0 || to < from {
		return fmt.Errorf("there are no lanes from %s to %s", m[1], until)
	}
	d.rows = append(d.rows, row{from: m[1], to: until, text: m[3], answer: true})
	d.rows[len(d.rows)-1].from += noteMark
	d.told = append(d.told, fmt.Sprintf("%s: %s", d.nameOf(m[1]), flat(m[3])))
	return nil
}

// noteMark tells a note from a message; no name has it.
const noteMark = "!"

func (d *drawing) has(id string) bool {
	return d.laneOf(id) >= 0 || slices.ContainsFunc(d.boxes, func(b box) bool { return b.id == id })
}

func (d *drawing) laneOf(id string) int {
	return slices.IndexFunc(d.lanes, func(l lane) bool { return l.id == id })
}

func (d *drawing) nameOf(id string) string {
	if i := d.laneOf(id); i >= 0 {
		return flat(d.lanes[i].name)
	}
	for _, b := range d.boxes {
		if b.id == id {
			name, _, _ := strings.Cut(b.text, "|")
			return strings.TrimSpace(name)
		}
	}
	return id
}

// flat is a text without the breaks that the picture has.
func flat(text string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(text, "|", " ")), " ")
}

func parse(text string) (*drawing, error) {
	d := &drawing{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := d.take(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	switch {
	case d.title == "":
		return nil, errors.New("there is no title")
	case len(d.lanes) == 0 && len(d.boxes) == 0:
		return nil, errors.New("there is nothing to draw")
	case len(d.lanes) > 0 && len(d.boxes) > 0:
		return nil, errors.New("lanes and boxes do not go together")
	}
	return d, nil
}

// effectMark ends a line with the effects that it stands for, by which a test holds the walk against the product.
var effectMark = regexp.MustCompile(`^(.*\S)\s+\{([^{}]+)\}$`)

func (d *drawing) take(line string) error {
	if m := effectMark.FindStringSubmatch(line); m != nil {
		line = m[1]
		for what := range strings.SplitSeq(m[2], ", ") {
			d.effects = append(d.effects, effect{d.section, what})
		}
	}
	for _, k := range kinds {
		if m := k.form.FindStringSubmatch(line); m != nil {
			return k.take(d, m)
		}
	}
	return fmt.Errorf("%q is not understood", line)
}
