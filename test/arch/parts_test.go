// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"os/exec"
	"strings"
	"testing"
)

// TestProgramsLeaveMostOfKubernetesOut (PP-13): neither our code nor a library of ours brings the clients, the informers and the types of all
// of Kubernetes into the programs: they were half of what was loaded. Catches one import of client-go's elector.
func TestProgramsLeaveMostOfKubernetesOut(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "../../cmd/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Fields(string(out))
	types := 0
	for _, part := range parts {
		for _, heavy := range []string{
			"k8s.io/client-go/kubernetes", "k8s.io/client-go/informers", "k8s.io/client-go/listers", "k8s.io/client-go/applyconfigurations",
			"k8s.io/apiserver", "k8s.io/kubernetes", "sigs.k8s.io/gateway-api", "sigs.k8s.io/controller-runtime",
		} {
			if part == heavy || strings.HasPrefix(part, heavy+"/") {
				t.Errorf("%s is in a program", part)
			}
		}
		if strings.HasPrefix(part, "k8s.io/api/") {
			types++
		}
	}
	// A list that lacks what is surely there proves nothing.
	if !strings.Contains(string(out), "k8s.io/client-go/rest\n") || types == 0 || types > 6 {
		t.Errorf("%d packages, %d of them groups of API types", len(parts), types)
	}
}
