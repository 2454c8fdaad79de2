// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
)

// metricsPage has the table of our own metrics, in rows that begin with a name.
const metricsPage = "docs/status.md"

var (
	metricRow  = regexp.MustCompile("^\\| `(csi_tandem_[a-z_]+)` \\|")
	metricName = regexp.MustCompile(`^csi_tandem_[a-z]+(_[a-z]+)+$`)
)

// checkMetrics holds the names of our own metrics against the page about them, both ways: dashboards are built on that page.
func checkMetrics(t *Tree) []Finding {
	documented := map[string]bool{}
	page, err := fs.ReadFile(t.Root, metricsPage)
	for line := range strings.Lines(string(page)) {
		if row := metricRow.FindStringSubmatch(line); err == nil && row != nil {
			documented[row[1]] = true
		}
	}
	var findings []Finding
	made := map[string]bool{}
	for _, f := range t.Files {
		if !f.product() || f.Test {
			continue
		}
		for name, where := range t.metricsIn(f) {
			made[name] = true
			if !documented[name] {
				findings = append(findings, Finding{"metric", where, fmt.Sprintf("%s is not in the table of %s", name, metricsPage)})
			}
		}
	}
	for name := range documented {
		if !made[name] {
			findings = append(findings, Finding{"metric", metricsPage, fmt.Sprintf("nothing makes %s", name)})
		}
	}
	return sorted(findings)
}

// metricsIn are the texts of a file that are nothing but a metric's name.
func (t *Tree) metricsIn(f *File) map[string]string {
	found := map[string]string{}
	ast.Inspect(f.AST, func(n ast.Node) bool {
		if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
			if name, err := strconv.Unquote(text.Value); err == nil && metricName.MatchString(name) {
				found[name] = t.at(text)
			}
		}
		return true
	})
	return found
}
