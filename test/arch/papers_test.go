// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"slices"
	"testing"
	"testing/fstest"
)

var paperProofs = []proof{
	{"a link to nothing", "paper", "docs/a.md", "see [b](b.md)\n", "links to b.md, which is not there"},
	{"a link to itself", "paper", "docs/a.md", "see [a](a.md) and [above](#top)\n\n# Top\n", ""},
	{"a heading that is not there", "paper", "docs/a.md", "see [above](#top)\n\n    # Top\n", "no such heading"},
	{"a link elsewhere", "paper", "docs/a.md", "see [a](https://example.com/a.md#b)\n", ""},
	{"a link in code", "paper", "docs/a.md", "write `[b](b.md)`\n", ""},
	{"a target that is none", "paper", "README.md", "run `make coffee`\n", "make coffee"},
	{"a target in a block", "paper", "README.md", "so:\n\n    make coffee\n", "make coffee"},
	{"the word", "paper", "README.md", "to make coffee\n", ""},
	{"a flag of nobody", "paper", "README.md", "`--coffee=black`\n", "--coffee"},
	{"a flag in a table", "paper", "README.md", "| `--coffee` | `black` | x |\n", ""},
	{"a flag of kubectl", "paper", "README.md", "    kubectl wait --for=x\n", ""},
	{"what begins flags", "paper", "README.md", "the `--coffee-` flags\n\n| `--coffee-cups` | | x |\n", ""},
	{"what begins none", "paper", "README.md", "the `--tea-` flags\n\n| `--coffee-cups` | | x |\n", "--tea-"},
	{"a file that is not there", "paper", "README.md", "`pkg/coffee/cup.go`\n", "pkg/coffee/cup.go"},
	{"a file that is there", "paper", "docs/a.md", "`docs/a.md`, `a.md` and `README`\n", ""},
	{"a pattern", "paper", "docs/a.md", "`pkg/...`\n", ""},
	{"a file in a command", "paper", "README.md", "so:\n\n    kubectl apply -f examples/cup.yaml\n", "examples/cup.yaml"},
	{"a command that is none", "paper", "README.md", "so:\n\n    $ bin/provisioner brew cup\n", "provisioner brew"},
	{"a program that is spoken of", "paper", "README.md", "so:\n\n    What the provisioner would brew\n", ""},
	{"a test that is none", "paper", "docs/a.md", "`TestCoffee`\n", "TestCoffee"},
}

func TestPapers(t *testing.T) { prove(t, paperProofs) }

// TestPapersTogether: what is found in other files than the page.
func TestPapersTogether(t *testing.T) {
	tree, err := Load(fstest.MapFS{
		"Makefile":             {Data: []byte("coffee: ## Make some\n")},
		"pkg/a/a.go":           {Data: []byte("package a\n\nfunc f() { fs.BoolVar(&x, \"milk\", false, \"\") }\n")},
		"cmd/provisioner/a.go": {Data: []byte("package main\n\nvar c = sidecar.Command{Name: \"brew\", Object: \"CUP\"}\n")},
		"pkg/a/a_test.go":      {Data: []byte("package a\n\nfunc TestCup() {}\n")},
		"docs/README.md":       {Data: []byte("[a](a.md)\n")},
		"docs/a.md":            {Data: []byte("`provisioner brew` `kubectl csi brew` `provisioner completion bash` `make coffee` `--milk` `TestCup` [b](b.md#two-words-and-more)\n")},
		"docs/b.md":            {Data: []byte("# Two `words`, and more\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range sorted(checkPapers(tree)) {
		got = append(got, f.String())
	}
	if want := []string{"paper: docs/README.md: does not list docs/b.md"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
