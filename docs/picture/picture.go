// SPDX-License-Identifier: Apache-2.0

// Package picture owns the pictures of the documentation: texts beside it that say who does what, and the SVG that is made of
// each, always the same one.
//
// It must not know what the pictures are about, nor anything of the product; its tests do. A walk shows parts as lanes and what
// passes between them from top to bottom; a map shows boxes in a grid and arrows between them. The tests make every SVG anew
// and compare, and play the walks; go test ./docs/picture -update writes the SVGs.
//
// It stands beside the pages that show the pictures, and in none of the product's walks.
package picture

import (
	"fmt"
	"strings"
)

// The sizes of letters and of what stands around them, in pixels.
const (
	fontSize = 13
	leading  = 17
	margin   = 16
	padding  = 8
)

// Draw makes the SVG of a text. An error names the line that it does not understand.
func Draw(text string) (string, error) {
	d, err := parse(text)
	if err != nil {
		return "", err
	}
	if len(d.boxes) > 0 {
		return drawMap(d), nil
	}
	return drawWalk(d), nil
}

// canvas gathers the parts of an SVG.
type canvas struct {
	body          strings.Builder
	width, height int
}

func (c *canvas) add(format string, args ...any) { fmt.Fprintf(&c.body, format+"\n", args...) }

// lines writes lines of text below each other, the first with its base line at y.
func (c *canvas) lines(x, y int, class string, lines []string) {
	for i, line := range lines {
		c.add(`<text x="%d" y="%d" class="%s">%s</text>`, x, y+i*leading, class, escape(line))
	}
}

// box is a rectangle around centred lines.
func (c *canvas) box(x, y, width int, class string, lines []string) (height int) {
	height = boxHeight(lines)
	c.add(`<rect x="%d" y="%d" width="%d" height="%d" rx="5" class="%s"/>`, x, y, width, height, class)
	c.lines(x+width/2, y+padding+fontSize-1, "middle", lines)
	return height
}

func boxHeight(lines []string) int { return len(lines)*leading + 2*padding - (leading - fontSize) }

// style has the colours for light and for dark pages.
const style = `<style>
svg { --ink: #1c2733; --dim: #5b6b7a; --page: #ffffff; --part: #e3f0f4; --edge: #1f6f8b; --note: #fdf3d8; --rim: #c9a227; }
@media (prefers-color-scheme: dark) { svg { --ink: #e6edf3; --dim: #9fb0bf; --page: #11181f; --part: #173642; --edge: #6fb7cf; --note: #3a3114; --rim: #a88a2a; } }
text { fill: var(--ink); } .over { paint-order: stroke; stroke: var(--page); stroke-width: 4; } .middle { text-anchor: middle; } .dim { fill: var(--dim); text-anchor: middle; font-style: italic; }
.page { fill: var(--page); } .part { fill: var(--part); stroke: var(--edge); } .note { fill: var(--note); stroke: var(--rim); }
.life { stroke: var(--dim); stroke-dasharray: 2 4; } .arrow { stroke: var(--edge); fill: none; stroke-width: 1.5; }
.answer { stroke: var(--edge); fill: none; stroke-width: 1.5; stroke-dasharray: 6 4; } .head { fill: var(--edge); } .band { stroke: var(--dim); }
</style>
<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0 10 5 0 10z" class="head"/></marker></defs>`

// svg is the whole picture. What it shows is also told in words, for those who cannot see it.
func (c *canvas) svg(title, told string) string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="%d" role="img">
<title>%s</title>
<desc>%s</desc>
%s
<rect width="%d" height="%d" class="page"/>
%s</svg>
`, c.width, c.height, c.width, c.height, fontSize, escape(title), escape(told), style, c.width, c.height, c.body.String())
}

func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}
