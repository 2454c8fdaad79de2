// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// hurry is how often somebody who waits hears what for.
const hurry = 5 * time.Second

// again is how often they hear the same.
const again = 30 * time.Second

const indent = "      "

// The colours of a terminal.
const (
	plain = "\x1b[0m"
	bold  = "\x1b[1m"
	green = "\x1b[32m"
	amber = "\x1b[33m"
	cyan  = "\x1b[36m"
	grey  = "\x1b[90m"
)

// Narrator tells the story: to a terminal in colours and with a line that moves while something is waited for, to
// anything else in plain lines.
type Narrator struct {
	out      io.Writer
	terminal bool
	// width is how much of the moving line there is to wipe.
	width int
	ticks int
	// said is the last plain line of one who waits, and saidAt how long they had waited then.
	said   string
	saidAt time.Duration
}

// NewNarrator tells in plain lines.
func NewNarrator(out io.Writer) *Narrator { return &Narrator{out: out} }

// NewTerminalNarrator tells with colours.
func NewTerminalNarrator(out io.Writer) *Narrator { return &Narrator{out: out, terminal: true} }

func (n *Narrator) colour(code, text string) string {
	if !n.terminal {
		return text
	}
	return code + text + plain
}

func (n *Narrator) act(number int, title, says string) {
	fmt.Fprintf(n.out, "\n%s\n%s\n", n.colour(bold, fmt.Sprintf("=== %d. %s ", number, title)+strings.Repeat("=", max(3, 70-len(title)))), says)
}

func (n *Narrator) step(number, title string) {
	fmt.Fprintf(n.out, "\n%s %s\n", n.colour(bold, number), n.colour(bold, title))
}

func (n *Narrator) skip(reason string) {
	fmt.Fprintf(n.out, "%s%s\n", indent, n.colour(amber, "skipped: "+reason))
}

// Say explains.
func (n *Narrator) Say(format string, values ...any) {
	for line := range strings.Lines(fmt.Sprintf(format, values...)) {
		fmt.Fprintf(n.out, "%s%s\n", indent, strings.TrimRight(line, "\n"))
	}
}

// command shows what a user would type.
func (n *Narrator) command(text, remark string) {
	if remark != "" {
		remark = n.colour(grey, "   # "+remark)
	}
	fmt.Fprintf(n.out, "%s%s%s\n", indent, n.colour(cyan, "$ "+text), remark)
}

// quote shows words that somebody else said.
func (n *Narrator) quote(who, words string) {
	fmt.Fprintf(n.out, "%s%s\n", indent, n.colour(grey, who+" says: ")+n.colour(amber, words))
}

func (n *Narrator) waiting(what, why string, since time.Duration) {
	if !n.terminal {
		n.plainWaiting(what, why, since)
		return
	}
	n.ticks++
	text := fmt.Sprintf("%s%c waiting until %s", indent, []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")[n.ticks%10], what)
	if since >= hurry {
		text += fmt.Sprintf(" (%ds: %s)", int(since.Seconds()), why)
	}
	text = cut(text, 110)
	fmt.Fprintf(n.out, "\r%s\x1b[K", n.colour(grey, text))
	n.width = len(text)
}

// plainWaiting repeats itself rarely: a line that cannot be wiped stays for ever.
func (n *Narrator) plainWaiting(what, why string, since time.Duration) {
	text := what + ": " + cut(why, 160)
	if since < hurry || text == n.said && since >= n.saidAt && since-n.saidAt < again {
		return
	}
	n.said, n.saidAt = text, since
	fmt.Fprintf(n.out, "%s… waiting for %ds until %s\n", indent, int(since.Seconds()), text)
}

// wipe takes the moving line away.
func (n *Narrator) wipe() {
	if n.width > 0 {
		fmt.Fprint(n.out, "\r\x1b[K")
		n.width = 0
	}
}

func (n *Narrator) done(what string, took time.Duration) {
	n.wipe()
	after := ""
	if took >= 100*time.Millisecond {
		after = n.colour(grey, fmt.Sprintf(" (%.1fs)", took.Seconds()))
	}
	fmt.Fprintf(n.out, "  %s   %s%s\n", n.colour(green, "✓"), what, after)
}

// table shows objects as kubectl would.
func (n *Narrator) table(header string, rows ...[]string) {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 4, 3, ' ', 0)
	fmt.Fprintln(w, strings.Join(strings.Fields(header), "\t"))
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // Into memory.
	for i, line := range strings.Split(strings.TrimRight(text.String(), "\n"), "\n") {
		if i == 0 {
			line = n.colour(grey, line)
		}
		fmt.Fprintf(n.out, "%s  %s\n", indent, strings.TrimRight(line, " "))
	}
}

func cut(text string, length int) string {
	if runes := []rune(text); len(runes) > length {
		return string(runes[:length-1]) + "…"
	}
	return text
}
