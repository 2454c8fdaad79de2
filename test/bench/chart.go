// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
)

// Measures of the picture, in pixels.
const (
	pictureWidth = 900
	labelWidth   = 230
	barWidth     = 540
	barHeight    = 15
	groupHeight  = 2*barHeight + 14
	titleHeight  = 34
	margin       = 24
)

// Colours of the bars; both can be told apart without seeing colours.
const (
	ownColour   = "#1f6f8b"
	otherColour = "#b8c0c8"
	limitColour = "#c0392b"
)

// panel is one kind of figure, for all phases that both runs have or only one of them.
type panel struct {
	title string
	unit  string
	of    func(Row) float64
	// limit is a line across, or zero.
	limit      float64
	limitTitle string
}

// draw makes a picture of a result beside another one, as SVG.
func draw(r, against *Result) []byte {
	rate := panel{title: "objects done in a second (more is better)", unit: "/s", of: func(row Row) float64 { return row.Done.Rate }}
	if limit, found := r.row(bare); found {
		rate.limit, rate.limitTitle = limit.Done.Rate, fmt.Sprintf("claims and volumes of a bare client: %.0f/s", limit.Done.Rate)
	}
	panels := []panel{{title: "API writes for each object (less is better)", of: Row.writes}, rate}
	height := 2 * margin
	var body bytes.Buffer
	y := drawLegend(&body, r, against)
	for _, p := range panels {
		y = p.draw(&body, y+margin, [2]*Result{r, against})
	}
	height += y
	var picture bytes.Buffer
	fmt.Fprintf(&picture, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">`+"\n",
		pictureWidth, height, pictureWidth, height)
	fmt.Fprintf(&picture, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", pictureWidth, height)
	picture.Write(body.Bytes())
	picture.WriteString("</svg>\n")
	return picture.Bytes()
}

func drawLegend(out *bytes.Buffer, r, against *Result) (below int) {
	y := margin
	for i, one := range []*Result{r, against} {
		colour := ownColour
		if i == 1 {
			colour = otherColour
		}
		fmt.Fprintf(out, `<rect x="%d" y="%d" width="14" height="14" fill="%s"/>`+"\n", margin, y, colour)
		what := fmt.Sprintf("%s (%s, measured %s)", one.Label, one.Machine, one.Date)
		if one.Flags != "" {
			what += ", " + one.Flags
		}
		write(out, margin+22, y+12, "start", what)
		y += 20
	}
	return y
}

// draw returns where the panel ends.
func (p panel) draw(out *bytes.Buffer, y int, results [2]*Result) (below int) {
	write(out, margin, y+14, "start", p.title)
	y += titleHeight
	top := y
	most := max(p.limit, 1e-9)
	for _, limit := range budgets {
		for _, r := range results {
			if row, found := r.row(limit.phase); found {
				most = max(most, p.of(row))
			}
		}
	}
	for _, limit := range budgets {
		write(out, labelWidth-10, y+barHeight+4, "end", limit.phase)
		for i, r := range results {
			row, found := r.row(limit.phase)
			if !found {
				continue
			}
			colour := ownColour
			if i == 1 {
				colour = otherColour
			}
			at, length := y+i*(barHeight+1), p.of(row)/most*barWidth
			fmt.Fprintf(out, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", labelWidth, at, max(length, 1), barHeight, colour)
			write(out, labelWidth+int(length)+6, at+barHeight-3, "start", figure(p.of(row))+p.unit)
		}
		y += groupHeight
	}
	if p.limit > 0 {
		x := labelWidth + p.limit/most*barWidth
		fmt.Fprintf(out, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="%s" stroke-dasharray="4 3"/>`+"\n", x, top-4, x, y, limitColour)
		write(out, int(x), y+14, "end", p.limitTitle)
		y += 20
	}
	return y
}

// figure has as many digits as say something.
func figure(value float64) string {
	if value < 20 {
		return fmt.Sprintf("%.2f", value)
	}
	return fmt.Sprintf("%.0f", value)
}

func write(out *bytes.Buffer, x, y int, anchor, text string) {
	fmt.Fprintf(out, `<text x="%d" y="%d" text-anchor="%s">`, x, y, anchor)
	_ = xml.EscapeText(out, []byte(text)) // A buffer takes everything.
	out.WriteString("</text>\n")
}
