// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"slices"
	"strings"
)

// Account is who gets rights.
type Account struct{ Namespace, Name string }

// Manifest is a file of rights.
type Manifest struct {
	// Path is where it is in the repository.
	Path string
	// Says is the comment at its head; each line becomes one.
	Says string
	// Name is that of the roles and their bindings.
	Name string
	// Account is bound to them, and made here if Makes says so.
	Account Account
	Makes   bool
	Sets    []Set
}

// Render writes the manifest as YAML. Verbs of rows about the same objects are one rule.
func (m Manifest) Render() ([]byte, error) {
	rows, err := Rows(m.Sets...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Path, err)
	}
	var b strings.Builder
	for line := range strings.Lines(m.Says) {
		fmt.Fprintf(&b, "# %s\n", strings.TrimSpace(line))
	}
	b.WriteString("# Written from the table of test/rights: go test ./test/rights -update\n")
	separator := ""
	document := func(format string, args ...any) {
		b.WriteString(separator)
		fmt.Fprintf(&b, format, args...)
		separator = "---\n"
	}
	if m.Makes {
		document("apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: %s\n  namespace: %s\n", m.Account.Name, m.Account.Namespace)
	}
	for _, scope := range []Scope{Everywhere, Home} {
		rules := m.rules(rows, scope)
		if rules == "" {
			continue
		}
		prefix, namespace := "Cluster", ""
		if scope == Home {
			prefix, namespace = "", "  namespace: "+m.Account.Namespace+"\n"
		}
		document("apiVersion: rbac.authorization.k8s.io/v1\nkind: %sRole\nmetadata:\n  name: %s\n%srules:\n%s", prefix, m.Name, namespace, rules)
		document("apiVersion: rbac.authorization.k8s.io/v1\nkind: %sRoleBinding\nmetadata:\n  name: %s\n%s"+
			"roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: %sRole\n  name: %s\n"+
			"subjects:\n  - kind: ServiceAccount\n    name: %s\n    namespace: %s\n",
			prefix, m.Name, namespace, prefix, m.Name, m.Account.Name, m.Account.Namespace)
	}
	return []byte(b.String()), nil
}

// order is that in which verbs are written.
var order = []string{"get", "list", "watch", "create", "patch", "delete"}

func (m Manifest) rules(rows []Row, scope Scope) string {
	type object struct{ group, resource, name string }
	var objects []object
	verbs, whys := map[object][]string{}, map[object][]string{}
	for _, r := range rows {
		if r.Scope != scope {
			continue
		}
		o := object{r.Group, r.Resource, r.Name}
		if !slices.Contains(objects, o) {
			objects = append(objects, o)
		}
		verbs[o] = append(verbs[o], strings.Fields(r.Verbs)...)
		if !slices.Contains(whys[o], r.Why) {
			whys[o] = append(whys[o], r.Why)
		}
	}
	var b strings.Builder
	for _, o := range objects {
		for _, why := range whys[o] {
			fmt.Fprintf(&b, "  # %s\n", why)
		}
		group := o.group
		if group == "" {
			group = `""`
		}
		fmt.Fprintf(&b, "  - apiGroups: [%s]\n    resources: [%s]\n", group, o.resource)
		if o.name != "" {
			fmt.Fprintf(&b, "    resourceNames: [%s]\n", o.name)
		}
		merged := slices.DeleteFunc(slices.Clone(order), func(v string) bool { return !slices.Contains(verbs[o], v) })
		fmt.Fprintf(&b, "    verbs: [%s]\n", strings.Join(merged, ", "))
	}
	return b.String()
}
