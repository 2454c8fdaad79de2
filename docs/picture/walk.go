// SPDX-License-Identifier: Apache-2.0

package picture

import "strings"

const (
	laneWidth = 210
	laneBox   = 180
	// step is what a message needs below its text, and gap what stands between things.
	step = 8
	gap  = 14
)

// drawWalk draws lanes from left to right and what happens from top to bottom.
func drawWalk(d *drawing) string {
	w := &walk{d: d}
	top := margin
	names := make([][]string, len(d.lanes))
	tallest := 0
	for i, l := range d.lanes {
		names[i] = wrap(l.name, laneBox-2*padding)
		tallest = max(tallest, len(names[i]))
	}
	for i := range names {
		for len(names[i]) < tallest {
			names[i] = append(names[i], "")
		}
	}
	w.y = top + boxHeight(names[0]) + gap
	for _, r := range d.rows {
		w.row(r)
	}
	bottom := w.y
	w.width, w.height = 2*margin+len(d.lanes)*laneWidth, bottom+margin
	// The lanes lie below what crosses them.
	things := w.body.String()
	w.body.Reset()
	for i := range d.lanes {
		w.add(`<line x1="%d" y1="%d" x2="%d" y2="%d" class="life"/>`, center(i), top, center(i), bottom)
		w.box(center(i)-laneBox/2, top, laneBox, "part", names[i])
	}
	w.body.WriteString(things)
	return w.svg(d.title, strings.Join(d.told, ". ")+".")
}

// walk is a canvas that is filled downwards.
type walk struct {
	canvas
	d *drawing
	y int
}

func center(lane int) int { return margin + laneWidth/2 + lane*laneWidth }

func (w *walk) row(r row) {
	from, isNote := strings.CutSuffix(r.from, noteMark)
	switch {
	case r.from == "":
		w.section(r.text)
	case isNote:
		w.note(w.d.laneOf(from), w.d.laneOf(r.to), r.text)
	case r.from == r.to:
		w.own(w.d.laneOf(r.from), r)
	default:
		w.message(w.d.laneOf(r.from), w.d.laneOf(r.to), r)
	}
}

func (w *walk) section(text string) {
	w.y += gap
	w.add(`<line x1="%d" y1="%d" x2="%d" y2="%d" class="band"/>`, margin, w.y, margin+len(w.d.lanes)*laneWidth, w.y)
	w.lines(margin+len(w.d.lanes)*laneWidth/2, w.y+leading, "dim over", []string{text})
	w.y += leading + gap
}

func (w *walk) note(from, to int, text string) {
	width := (to-from)*laneWidth + laneBox + padding
	w.y += w.box(center(from)-(laneBox+padding)/2, w.y, width, "note", wrap(text, width-2*padding)) + gap
}

// own is what a part does by itself: an arrow that comes back.
func (w *walk) own(lane int, r row) {
	x := center(lane)
	lines := wrap(r.text, laneWidth/2+laneWidth/3)
	height := len(lines) * leading
	side, class := 1, "start"
	if lane == len(w.d.lanes)-1 {
		side, class = -1, "end"
	}
	w.add(`<path d="M%d %dh%dv%dh%d" class="arrow" marker-end="url(#head)"/>`, x, w.y, side*22, height, -side*20)
	for i, line := range lines {
		w.add(`<text x="%d" y="%d" class="over" text-anchor="%s">%s</text>`, x+side*28, w.y+fontSize+i*leading, class, escape(line))
	}
	w.y += height + gap
}

func (w *walk) message(from, to int, r row) {
	x1, x2 := center(from), center(to)
	width := max(x1, x2) - min(x1, x2)
	lines := wrap(r.text, width-2*padding)
	w.lines((x1+x2)/2, w.y+fontSize, "middle over", lines)
	w.y += len(lines)*leading + step/2
	class := "arrow"
	if r.answer {
		class = "answer"
	}
	w.add(`<line x1="%d" y1="%d" x2="%d" y2="%d" class="%s" marker-end="url(#head)"/>`, x1, w.y, x2, w.y, class)
	w.y += step + gap/2
}
