// SPDX-License-Identifier: Apache-2.0

package spelling

import "testing"

// TestNearest: one slip is understood, two words that are merely both words are not. Catches a hint that sends people
// to something else than they meant.
func TestNearest(t *testing.T) {
	known := []string{"topology.kubernetes.io/zone", "topology.kubernetes.io/region", "kubernetes.io/hostname", "disk.example.com"}
	for word, want := range map[string]string{
		"topology.kubernets.io/zone":              "topology.kubernetes.io/zone",
		"topology.kubernetes.io/zones":            "topology.kubernetes.io/zone",
		"Topology.Kubernetes.io/regoin":           "topology.kubernetes.io/region",
		"disc.example.com":                        "disk.example.com",
		"disk_example.com":                        "disk.example.com",
		"failure-domain.beta.kubernetes.io/zone":  "",
		"zone":                                    "",
		"":                                        "",
		"another-driver-of-somebody.example.org":  "",
		"topology.kubernetes.io/zöne":             "topology.kubernetes.io/zone",
		"topology.kubernetes.io/somewhere-else-1": "",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	if got := Nearest("zone", nil); got != "" {
		t.Errorf("out of nothing: %q", got)
	}
}
