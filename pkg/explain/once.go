// SPDX-License-Identifier: Apache-2.0

package explain

import "strings"

const (
	// errorInStatus is the name of a fact that is an error, which steps and events repeat.
	errorInStatus = "error in status"
	// asAbove stands for what is not said again, and leastRepeated is how much that has to be: a few words are sooner read than looked up.
	asAbove, leastRepeated = "as said above", 30
)

// advice is what all machines advise.
func (r *Report) advice() []string {
	var all []string
	for _, m := range r.Machines {
		all = append(all, m.Advice...)
	}
	return all
}

// once is a text as far as it was not said before. One error goes from the driver into the status of the content, that of the snapshot and
// the events of both, with other words before it each time and with a remedy behind it.
func (p *page80) once(text string) string {
	text = p.withoutAdvice(text)
	for at := 0; len(text)-at >= leastRepeated; {
		if p.hasSaid(text[at:]) {
			return text[:at] + asAbove
		}
		next := strings.Index(text[at:], ": ")
		if next < 0 {
			break
		}
		at += next + len(": ")
	}
	p.said = append(p.said, text)
	return text
}

func (p *page80) hasSaid(text string) bool {
	for _, said := range p.said {
		if strings.Contains(said, text) {
			return true
		}
	}
	return false
}

// withoutAdvice is a text without a remedy that has a line of its own.
func (p *page80) withoutAdvice(text string) string {
	for _, a := range p.advice {
		text = strings.TrimSuffix(text, "; "+a)
	}
	return text
}
