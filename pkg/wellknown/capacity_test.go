// SPDX-License-Identifier: Apache-2.0

package wellknown

import (
	"strings"
	"testing"
)

// The vectors are those by which objects of other sidecars are labelled; another way to cut would take
// their objects for foreign and leave them to rot.
func TestCapacityManagedBy(t *testing.T) {
	for node, want := range map[string]string{
		"":                                "external-provisioner",
		"node-1":                          "external-provisioner-node-1",
		strings.Repeat("n", 42):           "external-provisioner-" + strings.Repeat("n", 42),
		"node" + strings.Repeat("a", 39):  "external-p-53f40b57-node" + strings.Repeat("a", 39),
		"node" + strings.Repeat("a", 49):  "external-provisioner-a3607ff1",
		"node" + strings.Repeat("a", 248): "external-provisioner-" + hash32("external-provisioner-node"+strings.Repeat("a", 248)),
	} {
		got := CapacityManagedBy(node)
		if got != want || len(got) > 63 {
			t.Errorf("%q: got %q (%d), want %q", node, got, len(got), want)
		}
	}
}
