// SPDX-License-Identifier: Apache-2.0

package arch

import "testing"

var textProofs = []proof{
	{"a paper that is not here", "text", "pkg/kube/kube.go", "package kube\n\n// See plan.md.\n", "names plan.md"},
	{"a paper that is here", "text", "CONTRIBUTING.md", "this is CONTRIBUTING.md\n", ""},
	{"a paper of others, linked", "text", "pkg/kube/kube.go", "package kube\n\n// See https://example.com/spec.md for why.\n", ""},
	{"a path out of the tree", "text", "pkg/kube/kube.go", "package kube\n\nvar x = \"../../../notes\"\n", "out of the repository"},
	{"a path within", "text", "pkg/kube/kube.go", "package kube\n\nvar x = \"../../deploy\" + \"./...\"\n", ""},
	{"somebody's machine", "text", "Makefile", "cp /home/me/x .\n", "means nothing"},
	{"a number in a list elsewhere", "text", "README.md", "as in decision 12\n", "decision 12"},
	{"a promise", "text", "pkg/kube/kube.go", "package kube\n\n// TODO: later\n", "not promised"},
	{"the name of a function", "text", "CONTRIBUTING.md", "`context.TODO` nowhere, `^context\\.TODO$` neither\n", ""},
	{"the word where it is code", "text", "pkg/kube/kube.go", "package kube\n\nvar x = \"TODO\"\n", ""},
}

func TestTexts(t *testing.T) { prove(t, textProofs) }
