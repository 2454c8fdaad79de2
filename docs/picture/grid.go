// SPDX-License-Identifier: Apache-2.0

package picture

import "strings"

const (
	cellBox = 200
	cellGap = 110
	rowGap  = 64
)

// place is where a box came to stand.
type place struct{ x, y, height int }

// drawMap draws boxes in a grid, and arrows between their edges.
func drawMap(d *drawing) string {
	c := &canvas{}
	places := layout(d, c)
	for _, l := range d.links {
		c.link(places[l.from], places[l.to], l)
	}
	for _, b := range d.boxes {
		class := "part"
		if b.note {
			class = "note"
		}
		p := places[b.id]
		c.box(p.x, p.y, cellBox, class, wrap(b.text, cellBox-2*padding))
	}
	return c.svg(d.title, strings.Join(d.told, ". ")+".")
}

// layout gives every box its place; each row is as high as its highest box.
func layout(d *drawing, c *canvas) map[string]place {
	var heights [10]int
	for _, b := range d.boxes {
		heights[b.row] = max(heights[b.row], boxHeight(wrap(b.text, cellBox-2*padding)))
		c.width = max(c.width, 2*margin+(b.col+1)*cellBox+b.col*cellGap)
	}
	places := map[string]place{}
	y := margin
	for row, height := range heights {
		for _, b := range d.boxes {
			if b.row == row {
				own := boxHeight(wrap(b.text, cellBox-2*padding))
				places[b.id] = place{margin + b.col*(cellBox+cellGap), y + (height-own)/2, own}
			}
		}
		if height > 0 {
			y += height + rowGap
		}
	}
	c.height = y - rowGap + margin
	return places
}

// link draws an arrow from edge to edge, with its text in the middle.
func (c *canvas) link(a, b place, r row) {
	x1, y1, x2, y2 := a.x+cellBox/2, a.y+a.height/2, b.x+cellBox/2, b.y+b.height/2
	switch {
	case a.x < b.x:
		x1, x2 = a.x+cellBox, b.x
	case a.x > b.x:
		x1, x2 = a.x, b.x+cellBox
	case a.y < b.y:
		y1, y2 = a.y+a.height, b.y
	default:
		y1, y2 = a.y, b.y+b.height
	}
	class := "arrow"
	if r.answer {
		class = "answer"
	}
	c.add(`<line x1="%d" y1="%d" x2="%d" y2="%d" class="%s" marker-end="url(#head)"/>`, x1, y1, x2, y2, class)
	lines := wrap(r.text, cellGap-4)
	if a.x == b.x {
		lines = wrap(r.text, cellBox)
	}
	width := 0
	for _, line := range lines {
		width = max(width, widthOf(line))
	}
	x, y := (x1+x2)/2, (y1+y2)/2-len(lines)*leading/2
	c.add(`<rect x="%d" y="%d" width="%d" height="%d" class="page"/>`, x-width/2-2, y, width+4, len(lines)*leading)
	c.lines(x, y+fontSize, "middle", lines)
}
