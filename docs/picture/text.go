// SPDX-License-Identifier: Apache-2.0

package picture

import "strings"

// widths are those of letters in thousandths of their size, as they are about the same in all fonts without serifs.
var widths = func() map[rune]int {
	w := map[rune]int{}
	for letters, width := range map[string]int{
		"iljI.,:;'|!` ": 330, "ft()[]/-r\"": 410, "mw": 950, "MW%@": 960, "ABCDEFGHJKLNOPQRSTUVXYZ&": 720,
	} {
		for _, r := range letters {
			w[r] = width
		}
	}
	return w
}()

// widthOf is about how wide a line is, rather too much than too little.
func widthOf(line string) int {
	sum := 0
	for _, r := range line {
		if w, ok := widths[r]; ok {
			sum += w
		} else {
			sum += 620
		}
	}
	return sum*fontSize/1000 + 1
}

// wrap breaks a text between words, and where it says so with a bar.
func wrap(text string, width int) []string {
	var lines []string
	for part := range strings.SplitSeq(text, "|") {
		line := ""
		for word := range strings.FieldsSeq(part) {
			switch {
			case line == "":
				line = word
			case widthOf(line+" "+word) <= width:
				line += " " + word
			default:
				lines = append(lines, line)
				line = word
			}
		}
		lines = append(lines, line)
	}
	return lines
}
