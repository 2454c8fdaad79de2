// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Pages are checked in what a reader would follow or type: links, and in code also files, tests, targets of make and flags.
var (
	inlineCode = regexp.MustCompile("`([^`\n]+)`")
	linkTarget = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading    = regexp.MustCompile(`^#{1,6}\s+(.+?)\s*$`)
	makeTarget = regexp.MustCompile(`\bmake ([a-z][a-z0-9-]*)`)
	testName   = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w*`)
	command    = regexp.MustCompile(`^\s*(?:\$ )?(?:bin/)?(provisioner|snapshotter|kubectl csi) ([a-z][a-z-]*)\b`)
	flagName   = regexp.MustCompile(`(?:^|[\s'"(])--([a-z][a-zA-Z0-9_-]*)`)
	treePath   = regexp.MustCompile(`^\.{0,2}/?(?:(?:cmd|pkg|test|deploy|docs|examples|\.ci)/[\w./-]+|[A-Za-z]\w*\.(?:md|mk|go|mod|yaml|svg|png))$`)
)

// checkPapers: nothing that a page names is missing.
func checkPapers(t *Tree) []Finding {
	known := newKnown(t)
	var found []Finding
	for _, p := range t.Texts {
		if path.Ext(p) != ".md" {
			continue
		}
		src, err := fs.ReadFile(t.Root, p)
		if err != nil {
			found = append(found, Finding{"paper", p, err.Error()})
			continue
		}
		found = append(found, known.read(p, string(src))...)
	}
	return append(found, known.unlisted()...)
}

// line is a line of a page.
type paperLine struct {
	number int
	text   string
	code   bool
}

// linesOf tells what stands in blocks of code from what does not.
func linesOf(src string) []paperLine {
	var lines []paperLine
	fenced := false
	for i, text := range strings.Split(src, "\n") {
		if strings.HasPrefix(strings.TrimSpace(text), "```") {
			fenced = !fenced
			continue
		}
		isList := regexp.MustCompile(`^\s*([-*]|\d+\.)\s`).MatchString(text)
		lines = append(lines, paperLine{i + 1, text, fenced || strings.HasPrefix(text, "    ") && !isList})
	}
	return lines
}

func (k *known) read(p, src string) []Finding {
	var found []Finding
	for _, line := range linesOf(src) {
		var faults []string
		if line.code {
			faults = append(k.codeFaults(line.text), k.pathFaults(p, line.text)...)
		} else {
			for _, m := range linkTarget.FindAllStringSubmatch(inlineCode.ReplaceAllString(line.text, ""), -1) {
				faults = append(faults, k.linkFaults(p, m[1])...)
			}
			for _, m := range inlineCode.FindAllStringSubmatch(line.text, -1) {
				faults = append(faults, k.codeFaults(m[1])...)
				faults = append(faults, k.pathFaults(p, m[1])...)
			}
		}
		for _, what := range faults {
			found = append(found, Finding{"paper", fmt.Sprintf("%s:%d", p, line.number), what})
		}
	}
	return found
}

// linkFaults follows a link, unless it leads out of the repository.
func (k *known) linkFaults(from, link string) []string {
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return nil
	}
	file, anchor, hasAnchor := strings.Cut(link, "#")
	to := from
	if file != "" {
		to = path.Join(path.Dir(from), file)
	}
	if _, err := fs.Stat(k.tree.Root, to); err != nil {
		return []string{"links to " + link + ", which is not there"}
	}
	if hasAnchor && !slices.Contains(k.anchorsOf(to), anchor) {
		return []string{"links to " + link + ", which has no such heading"}
	}
	return nil
}

// anchorsOf are the names that headings get.
func (k *known) anchorsOf(p string) []string {
	if all, ok := k.anchors[p]; ok {
		return all
	}
	src, _ := fs.ReadFile(k.tree.Root, p) // a file that cannot be read has no headings
	var all []string
	for _, line := range linesOf(string(src)) {
		if m := heading.FindStringSubmatch(line.text); m != nil && !line.code {
			all = append(all, anchorOf(m[1]))
		}
	}
	k.anchors[p] = all
	return all
}

func anchorOf(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 127:
			return r
		}
		return -1
	}, strings.ToLower(title))
}

// codeFaults looks at what stands as code, in a line or in a block.
func (k *known) codeFaults(code string) []string {
	var faults []string
	for _, m := range makeTarget.FindAllStringSubmatch(code, -1) {
		if !k.targets[m[1]] {
			faults = append(faults, "says make "+m[1]+", which is no target")
		}
	}
	if m := command.FindStringSubmatch(code); m != nil && !k.commands[m[1]+" "+m[2]] {
		faults = append(faults, "says "+m[1]+" "+m[2]+", which is no command")
	}
	for _, name := range testName.FindAllString(code, -1) {
		if !k.tests[name] {
			faults = append(faults, "names "+name+", which is no test")
		}
	}
	for _, m := range flagName.FindAllStringSubmatch(code, -1) {
		if !k.hasFlag(m[1]) {
			faults = append(faults, "says --"+m[1]+", which is a flag of nobody")
		}
	}
	return faults
}

// pathFaults: what looks like a file of the repository is one.
func (k *known) pathFaults(from, code string) []string {
	var faults []string
	for _, word := range strings.Fields(code) {
		word = strings.Trim(word, `"'(),;:`)
		if treePath.MatchString(word) && !strings.Contains(word, "...") && !k.hasFile(from, word) {
			faults = append(faults, "names "+word+", which is not there")
		}
	}
	return faults
}

// hasFile: a file is named from the root, from beside, or by its bare name wherever it stands.
func (k *known) hasFile(from, word string) bool {
	if slices.ContainsFunc(k.tree.Texts, func(p string) bool { return path.Base(p) == word }) {
		return true
	}
	return slices.ContainsFunc([]string{path.Clean(strings.TrimPrefix(word, "/")), path.Join(path.Dir(from), word)}, func(at string) bool {
		_, err := fs.Stat(k.tree.Root, at)
		return err == nil
	})
}
