// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// updateVariable makes golden files follow what was found; what changed is then to be read, line by line.
const updateVariable = "CSI_TANDEM_UPDATE"

// golden compares a whole object with a file. What differs from run to run is replaced by its meaning, in upper case.
func (w *world) golden(name string, object any, meanings map[string]string) {
	w.Helper()
	got := w.normal(object, meanings)
	file := filepath.Join("testdata", name+".yaml")
	if os.Getenv(updateVariable) != "" {
		w.mustNot(os.MkdirAll("testdata", 0o755))
		w.mustNot(os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	w.mustNot(err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		w.Errorf("%s is not as in %s (-want +got):\n%s", name, file, diff)
	}
}

// numbered are values for which only their shape can be told.
var numbered = []struct {
	pattern *regexp.Regexp
	meaning string
}{
	{regexp.MustCompile(`(csiProvisionerIdentity: )\S+`), "${1}IDENTITY"},
	{regexp.MustCompile(`(creationTime: )"?\d\S*`), "${1}TIME"},
	{regexp.MustCompile(`(csi-tandem.io/made-at: )"?\d\S*`), "${1}TIME"},
	{regexp.MustCompile(`(lastPhaseTransitionTime: )\S+`), "${1}TIME"},
}

func (w *world) normal(object any, meanings map[string]string) string {
	w.Helper()
	content, err := json.Marshal(object)
	w.mustNot(err)
	var fields map[string]any
	w.mustNot(json.Unmarshal(content, &fields))
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		for _, key := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
			delete(metadata, key)
		}
	}
	dropVersions(fields)
	lines, err := yaml.Marshal(fields)
	w.mustNot(err)
	text := string(lines)
	// Long values first: one may be part of another.
	values := []string{}
	for value := range meanings {
		values = append(values, value)
	}
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	for _, value := range append(values, w.driver, w.ns) {
		meaning := meanings[value]
		switch value {
		case w.driver:
			meaning = "DRIVER"
		case w.ns:
			meaning = "NAMESPACE"
		}
		text = strings.ReplaceAll(text, value, meaning)
	}
	for _, n := range numbered {
		text = n.pattern.ReplaceAllString(text, n.meaning)
	}
	return text
}

// dropVersions takes resource versions out of references.
func dropVersions(fields map[string]any) {
	for _, value := range fields {
		if inner, ok := value.(map[string]any); ok {
			delete(inner, "resourceVersion")
			dropVersions(inner)
		}
	}
}
