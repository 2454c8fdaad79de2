// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// TestHardened: the manifests give each container of ours no more of its node than it needs.
func TestHardened(t *testing.T) {
	manifests, _ := Manifests(os.DirFS(root), "deploy")
	found := 0
	for _, m := range manifests {
		if pod := podOf(m); pod != nil {
			for _, c := range pod.Containers {
				if isOurs(c.Image) {
					found++
				}
			}
		}
	}
	if found < 4 {
		t.Errorf("only %d containers of ours are deployed", found)
	}
	for _, f := range sorted(Hardened(manifests)) {
		t.Error(f)
	}
}

func TestHardenedFaults(t *testing.T) {
	const good = `apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  hostNetwork: false
  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  containers:
    - name: c
      image: registry.example.com/csi-tandem/provisioner:v1
      args: [--v=2]
      securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, privileged: false, capabilities: {drop: [ALL]}}
    - {name: driver, image: somebody/driver, securityContext: {privileged: true}}
`
	for _, c := range []struct{ name, from, to, want string }{
		{"as little as it needs", "", "", ""},
		{"root", "runAsNonRoot: true", "runAsNonRoot: false", "may run as root"},
		{"the container's word counts", "securityContext: {allow", "securityContext: {runAsNonRoot: false, allow", "may run as root"},
		{"escalation", "allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true", "more privileges"},
		{"privileged", "privileged: false", "privileged: true", "is privileged"},
		{"a file system", "readOnlyRootFilesystem: true, ", "", "root file system"},
		{"some capabilities", "drop: [ALL]", "drop: [NET_RAW]", "keeps capabilities"},
		{"one capability", "drop: [ALL]", "drop: [ALL], add: [SYS_ADMIN]", "keeps capabilities"},
		{"no profile", ", seccompProfile: {type: RuntimeDefault}", "", "no seccomp"},
		{"unconfined", "type: RuntimeDefault", "type: Unconfined", "no seccomp"},
		{"the node's network", "hostNetwork: false", "hostNetwork: true", "shares namespaces"},
		{"profiles", "--v=2", "--enable-pprof", "shows profiles"},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := strings.Replace(good, c.from, c.to, 1)
			manifests, faults := Manifests(fstest.MapFS{"deploy/x.yaml": {Data: []byte(src)}}, "deploy")
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			expect(t, Hardened(manifests), c.want)
		})
	}
}
