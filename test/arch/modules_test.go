// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// modulePath is what a name of a module looks like in the first column of the page.
var modulePath = regexp.MustCompile(`[a-z0-9]+(?:\.[a-z0-9]+)+/[A-Za-z0-9._/-]+`)

// The page about modules lists exactly what is compiled into the two programs. Catches a module that comes along with a change
// and has no reason, and a reason that has outlived its module.
func TestModulesInTheBinaries(t *testing.T) {
	page, err := os.ReadFile(root + "/docs/modules.md")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			told = append(told, modulePath.FindAllString(cells[1], -1)...)
		}
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", "./cmd/...")
	list.Dir, list.Env = root, append(os.Environ(), "GOOS=linux", "GOFLAGS=-mod=readonly", "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		t.Fatalf("%s: %v", list, err)
	}
	compiled := strings.Fields(string(out))
	slices.Sort(compiled)
	slices.Sort(told)
	if diff := cmp.Diff(slices.Compact(compiled), told); diff != "" {
		t.Errorf("docs/modules.md has no reason for what is in the binaries (-), or one for what is not (+):\n%s", diff)
	}
}
