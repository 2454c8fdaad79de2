// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// podRights are those of the account that answers in the pod, in all namespaces: of deploy/pair, of the component explain, and of those that bring
// a kind which nothing else is about.
var podRights = sync.OnceValues(func() (rules []rbacv1.PolicyRule, err error) {
	for _, of := range []string{"pair/rbac", "pair/binding", "components/explain/rbac", "components/secrets/rbac", "components/cross-namespace/rbac", "components/modify/rbac"} {
		whole, err := os.ReadFile(filepath.Join("..", "..", "deploy", filepath.FromSlash(of)+".yaml"))
		if err != nil {
			return nil, err
		}
		for document := range strings.SplitSeq(string(whole), "\n---\n") {
			var role rbacv1.ClusterRole
			if err := yaml.Unmarshal([]byte(document), &role); err != nil {
				return nil, err
			}
			if role.Kind == "ClusterRole" {
				rules = append(rules, role.Rules...)
			}
		}
	}
	return rules, nil
})

// mayInPod tells that the account of the pod may read something everywhere. That a namespace is missing is told where it may be read.
func mayInPod(t *testing.T, verb, resource string) bool {
	t.Helper()
	rules, err := podRights()
	if err != nil {
		t.Fatal(err)
	}
	return resource == "namespaces" || slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, verb) && len(r.ResourceNames) == 0
	})
}
