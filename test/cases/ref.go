// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ref is a case as a test writes it. W and P stand for the weaknesses of whichever program the test is about.
type ref struct {
	prefix string
	number int
}

var (
	refStart  = regexp.MustCompile(`^(PW|PP|SW|T|S|B|W|P)(-?)(\d{1,3})(?:\.\d+)*`)
	refInName = regexp.MustCompile(`(?:PW|PP|SW|T|S|B|W)\d+`)
	between   = regexp.MustCompile(`^(?:\s*[,;/&+]\s*|\s+and\s+|\s+)`)
	upTo      = regexp.MustCompile(`^(?:\.\.|-|–|\s+to\s+)`)
	brackets  = regexp.MustCompile(`\(([^()]*)\)`)
)

// maxRange keeps a slip of the pen from naming a whole group.
const maxRange = 40

// nextRef takes one id off the front. Parts of a case, as in T36.4, count for the case.
func nextRef(s string) (r ref, rest string, ok bool) {
	m := refStart.FindStringSubmatch(s)
	if m == nil {
		return ref{}, s, false
	}
	rest = s[len(m[0]):]
	if after, _ := utf8.DecodeRuneInString(rest); rest != "" && isWord(after) {
		return ref{}, s, false
	}
	prefix, hyphen, digits := m[1], m[2], m[3]
	if !spelled(prefix, hyphen, digits) {
		return ref{}, s, false
	}
	number, err := strconv.Atoi(digits)
	return ref{prefix, number}, rest, err == nil
}

// spelled: short names of other things, T1 or P1, are not taken for cases.
func spelled(prefix, hyphen, digits string) bool {
	switch prefix {
	case "T":
		return hyphen == "" && len(digits) >= 2
	case "S":
		return hyphen == ""
	case "B":
		return hyphen == "" && len(digits) == 3
	case "P":
		return hyphen != ""
	}
	return true
}

func isWord(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

// leading reads the ids with which a text begins: "T35 T36.2 …", "T35, S41: …", "T84..T87 …".
func leading(s string) (refs []ref, rest string) {
	s = strings.TrimLeft(s, " \t")
	for {
		r, after, ok := nextRef(s)
		if !ok {
			return refs, s
		}
		refs, s = append(refs, r), after
		if m := upTo.FindString(s); m != "" {
			last, after, ok := nextRef(s[len(m):])
			if ok && last.prefix == r.prefix && last.number > r.number && last.number <= r.number+maxRange {
				for n := r.number + 1; n <= last.number; n++ {
					refs = append(refs, ref{r.prefix, n})
				}
				s = after
			}
		}
		m := between.FindString(s)
		if _, _, ok := nextRef(s[len(m):]); !ok {
			return refs, s
		}
		s = s[len(m):]
	}
}

// inComment reads ids where a comment names what it is about: before a colon at the start of a line, or in brackets.
func inComment(text string) []ref {
	var refs []ref
	for _, line := range strings.Split(text, "\n") {
		if before, rest := leading(line); len(before) > 0 && strings.HasPrefix(rest, ":") {
			refs = append(refs, before...)
		}
	}
	for _, m := range brackets.FindAllStringSubmatch(strings.ReplaceAll(text, "\n", " "), -1) {
		refs = append(refs, inBrackets(m[1])...)
	}
	return refs
}

func inBrackets(s string) []ref {
	var refs []ref
	isFree := true
	for s != "" {
		if isFree {
			if before, rest := leading(s); len(before) > 0 {
				refs, s = append(refs, before...), rest
			}
		}
		r, size := utf8.DecodeRuneInString(s)
		isFree = !isWord(r) && r != '-'
		s = s[size:]
	}
	return refs
}

// inName reads ids from the name of a test: TestT35Restore, TestRestoreT35S41, TestPW8. A capital before or a small letter
// after makes it part of a word.
func inName(name string) []ref {
	var refs []ref
	name = strings.TrimPrefix(strings.TrimPrefix(name, "Test"), "Fuzz")
	for _, at := range refInName.FindAllStringIndex(name, -1) {
		before, _ := utf8.DecodeLastRuneInString(name[:at[0]])
		after, _ := utf8.DecodeRuneInString(name[at[1]:])
		if at[0] > 0 && unicode.IsUpper(before) || at[1] < len(name) && unicode.IsLower(after) {
			continue
		}
		if r, rest, ok := nextRef(name[at[0]:at[1]]); ok && rest == "" {
			refs = append(refs, r)
		}
	}
	return refs
}

// Where the short names W and P are those of one program.
var (
	provisionerRooms = []string{
		"pkg/provision", "pkg/topology", "pkg/params", "pkg/capacity",
		"pkg/controller/claim", "pkg/controller/volume", "pkg/controller/source", "pkg/controller/storagecapacity",
	}
	snapshotterRooms = []string{"pkg/snapshot", "pkg/binding", "pkg/controller/volumesnapshot", "pkg/controller/content"}
)

// in resolves a ref by where it is written; "" means that it is not clear which case is meant.
func (r ref) in(dir string) string {
	switch prefix := r.prefix; {
	case prefix != "W" && prefix != "P":
		return r.id(prefix)
	case slices.Contains(provisionerRooms, dir):
		return r.id("P" + prefix)
	case prefix == "W" && slices.Contains(snapshotterRooms, dir):
		return r.id("SW")
	}
	return ""
}

func (r ref) id(prefix string) string {
	for _, g := range groups {
		if g.prefix == prefix {
			return fmt.Sprintf(g.format, r.number)
		}
	}
	return ""
}

func (r ref) String() string { return fmt.Sprintf("%s%d", r.prefix, r.number) }
