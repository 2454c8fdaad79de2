// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	"encoding/json"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
)

func stamped(t *testing.T) binary {
	t.Helper()
	name := filepath.Join(t.TempDir(), "program")
	write(t, name, "not really a program")
	return binary{file: name, arch: "arm64", info: &buildinfo.BuildInfo{
		GoVersion: "go1.26.8 X:something", Main: debug.Module{Path: "github.com/csi-tandem/csi-tandem", Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "k8s.io/api", Version: "v0.37.2"},
			{Path: "example.com/old", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/new", Version: "v2.0.0+incompatible"}},
		},
		Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "c0ffee"}, {Key: "vcs.time", Value: "2026-11-30T01:02:03+01:00"}, {Key: "vcs.modified", Value: "true"},
		},
	}}
}

// TestSBOM names what is in the binary, under the names by which advisories are looked up. What a replaced module replaces is
// not in there.
func TestSBOM(t *testing.T) {
	text, err := sbom(images()[0], "v1.2.3", stamped(t))
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"pkg:golang/github.com/csi-tandem/csi-tandem@v1.2.3", "pkg:golang/stdlib@1.26.8", "pkg:golang/k8s.io/api@v0.37.2",
		"pkg:golang/example.com/new@v2.0.0%2Bincompatible",
	}
	known := map[string]bool{documentID: true, binaryID: true}
	valid := regexp.MustCompile(`^SPDXRef-[A-Za-z0-9.-]+$`)
	for n, c := range d.Packages {
		if n >= len(want) || c.Refs[0].Locator != want[n] {
			t.Errorf("package %d is %s", n, c.Refs[0].Locator)
		}
		if known[c.ID] || !valid.MatchString(c.ID) {
			t.Errorf("%s is there twice, or is no name", c.ID)
		}
		known[c.ID] = true
	}
	for _, r := range d.Relationships {
		if !known[r.From] || !known[r.To] {
			t.Errorf("%+v is about something that is not there", r)
		}
	}
	if len(d.Packages) != len(want) || len(d.Relationships) != len(want)+1 {
		t.Errorf("%d packages, %d relationships", len(d.Packages), len(d.Relationships))
	}
	for _, part := range []string{`"spdxVersion": "SPDX-2.3"`, `"created": "2026-11-30T00:02:03Z"`, `built from commit c0ffee-dirty`, `replaces example.com/old v1.0.0`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("without %s:\n%s", part, text)
		}
	}
}

// TestLabelsOfACommit: the time is the commit's, or every build would give another image.
func TestLabelsOfACommit(t *testing.T) {
	got := labels(images()[1], "v1.2.3", stamped(t))
	for key, want := range map[string]string{
		"created": "2026-11-30T00:02:03Z", "revision": "c0ffee-dirty", "source": "https://github.com/csi-tandem/csi-tandem", "version": "v1.2.3",
	} {
		if got["org.opencontainers.image."+key] != want {
			t.Errorf("%s: %q, want %q", key, got["org.opencontainers.image."+key], want)
		}
	}
}
