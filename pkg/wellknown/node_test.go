// SPDX-License-Identifier: Apache-2.0

package wellknown

import (
	"strings"
	"testing"
)

func TestNodeLabel(t *testing.T) {
	long := strings.Repeat("node-", 20)
	for node, want := range map[string]string{
		"n1":                    "n1",
		strings.Repeat("n", 63): strings.Repeat("n", 63),
		strings.Repeat("n", 64): strings.Repeat("n", 54) + "-" + hash32(strings.Repeat("n", 64)),
		long:                    long[:54] + "-" + hash32(long),
	} {
		if got := NodeLabel(node); got != want || len(got) > 63 {
			t.Errorf("%s: %q, want %q", node, got, want)
		}
	}
}

func TestNodeOfIdentity(t *testing.T) {
	for identity, want := range map[string]string{
		"1700000000123-42-d.example-n1":     "n1",
		"1700000000123-42-d.example-rack-1": "rack-1",
		"1700000000123-42-d.example":        "",
		"1700000000123-42-d.example-":       "",
		"1700000000123-42-d.example2-n1":    "",
		"1700000000123-42-other.example-n1": "",
		"d.example-n1":                      "",
		"":                                  "",
	} {
		if got := NodeOfIdentity(identity, "d.example"); got != want {
			t.Errorf("%s: %q, want %q", identity, got, want)
		}
	}
}
