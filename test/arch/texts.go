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

var (
	url       = regexp.MustCompile(`[a-z]+://\S+`)
	paper     = regexp.MustCompile(`[A-Za-z0-9_./-]*[A-Za-z0-9_-]\.md\b`)
	upward    = regexp.MustCompile(`(^|[^.\w/])((?:\.\./)+)`)
	somewhere = regexp.MustCompile(`(^|[\s"'(=\x60])/(work|home|root|Users)/`)
	numbered  = regexp.MustCompile(`(?i)\b(decision|issue|brief)s?\s+#?\d+`)
	// After a dot it is the name of a function.
	later = regexp.MustCompile(`(?:^|[^.\w])(TO` + `DO|FIX` + `ME|XX` + `X)\b`)
)

// checkTexts: the repository stands on its own. What is written in it points only to things that a reader has, and promises
// nothing for later.
func checkTexts(t *Tree) []Finding {
	var found []Finding
	for _, p := range t.Texts {
		src, err := fs.ReadFile(t.Root, p)
		if err != nil {
			found = append(found, Finding{"text", p, err.Error()})
			continue
		}
		if p == "test/arch/texts_test.go" {
			continue // Its rows are made of what is forbidden.
		}
		for i, line := range strings.Split(string(src), "\n") {
			for _, what := range t.textFaults(p, url.ReplaceAllString(line, "")) {
				found = append(found, Finding{"text", fmt.Sprintf("%s:%d", p, i+1), what})
			}
		}
	}
	return found
}

// textFaults looks at one line. Papers and promises are looked for where people are spoken to: in Go, that is in comments.
func (t *Tree) textFaults(p, line string) []string {
	var faults []string
	said := line
	if path.Ext(p) == ".go" {
		_, said, _ = strings.Cut(line, "//")
	}
	for _, named := range paper.FindAllString(said, -1) {
		if !t.holds(p, named) {
			faults = append(faults, "names "+named+", which is not in the repository")
		}
	}
	if depth := strings.Count(p, "/"); slices.Contains([]string{".go", ".md", ".yaml", ".mod"}, path.Ext(p)) {
		for _, m := range upward.FindAllStringSubmatch(line, -1) {
			if strings.Count(m[2], "../") > depth {
				faults = append(faults, "points out of the repository: "+m[2])
			}
		}
	}
	for _, pattern := range []*regexp.Regexp{somewhere, numbered} {
		if m := pattern.FindString(line); m != "" {
			faults = append(faults, fmt.Sprintf("%q means nothing to somebody who has only the repository", strings.TrimSpace(m)))
		}
	}
	if m := later.FindStringSubmatch(said); m != nil {
		faults = append(faults, m[1]+": what is not done is not promised here")
	}
	return faults
}

// holds: a paper is named from the root, from beside, or by its bare name wherever it stands.
func (t *Tree) holds(from, named string) bool {
	named = strings.TrimPrefix(named, "/")
	for _, p := range t.Texts {
		if p == path.Clean(named) || p == path.Join(path.Dir(from), named) || p == path.Join("docs", named) {
			return true
		}
	}
	return false
}
