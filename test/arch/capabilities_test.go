// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGuideHasEveryCapability: the guide for vendors lists the capabilities that the product looks at, and no other. Catches one
// that begins to count without authors of drivers being told, and one that does not count any more.
func TestGuideHasEveryCapability(t *testing.T) {
	tree, err := Load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	looked := map[string]bool{}
	for _, f := range tree.Files {
		if !f.product() {
			continue
		}
		for _, s := range f.selectors() {
			for _, prefix := range []string{"ControllerServiceCapability_RPC_", "PluginCapability_Service_"} {
				if name, ok := strings.CutPrefix(s.name, prefix); ok && name == strings.ToUpper(name) && name != "UNKNOWN" {
					looked[name] = true
				}
			}
		}
	}
	guide, err := os.ReadFile(root + "/docs/vendor.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(guide), "\n## Capabilities\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var listed []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\|").FindAllStringSubmatch(section, -1) {
		listed = append(listed, m[1])
	}
	slices.Sort(listed)
	if d := cmp.Diff(slices.Sorted(maps.Keys(looked)), listed); d != "" {
		t.Errorf("capabilities (-looked at +in the guide):\n%s", d)
	}
}
