// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

const (
	// home is the namespace that the manifests install into.
	home = "csi-tandem"
	// everywhere stands for a right in all namespaces and on what has none.
	everywhere = "*"
)

// right is one verb on one resource. Group "core" is the group without a name.
type right struct {
	scope, group, resource, verb string
}

func (r right) String() string {
	return fmt.Sprintf("%s %s %s %s", r.scope, r.group, r.resource, r.verb)
}

// need is what a program does with a resource, and why.
type need struct {
	scope, group, resource, verbs, why string
}

func expand(needs []need) []right {
	var all []right
	for _, n := range needs {
		for verb := range strings.FieldsSeq(n.verbs) {
			all = append(all, right{n.scope, n.group, n.resource, verb})
		}
	}
	return all
}

// grantedTo reads what the manifests grant to a ServiceAccount, with whatever is wrong about the grants themselves.
func grantedTo(manifests []Manifest, account string) ([]right, []Finding) {
	g := grants{account: account, roles: map[string][]rbacv1.PolicyRule{}, bound: map[string]bool{}}
	for _, m := range manifests {
		g.take(m)
	}
	if !g.hasAccount {
		g.complain(account, "there is no such ServiceAccount in %s", home)
	}
	all := g.rights()
	return all, g.found
}

// grants collects roles and bindings; both are known as scope/name.
type grants struct {
	account    string
	hasAccount bool
	roles      map[string][]rbacv1.PolicyRule
	bound      map[string]bool
	found      []Finding
}

func (g *grants) complain(where, format string, args ...any) {
	g.found = append(g.found, Finding{"rights", where, fmt.Sprintf(format, args...)})
}

func (g *grants) take(m Manifest) {
	switch o := m.Object.(type) {
	case *corev1.ServiceAccount:
		g.hasAccount = g.hasAccount || o.Name == g.account && o.Namespace == home
	case *rbacv1.ClusterRole:
		g.roles[everywhere+"/"+o.Name] = o.Rules
	case *rbacv1.Role:
		g.roles[o.Namespace+"/"+o.Name] = o.Rules
	case *rbacv1.ClusterRoleBinding:
		g.bind(m.Path, everywhere+"/"+o.RoleRef.Name, o.Subjects)
	case *rbacv1.RoleBinding:
		g.bind(m.Path, o.Namespace+"/"+o.RoleRef.Name, o.Subjects)
	case *appsv1.Deployment:
		if got := o.Spec.Template.Spec.ServiceAccountName; got != g.account || o.Namespace != home {
			g.complain(m.Path, "runs as %s/%s, and the rights are %s/%s's", o.Namespace, got, home, g.account)
		}
	}
}

func (g *grants) bind(where, role string, subjects []rbacv1.Subject) {
	g.bound[role] = true
	for _, s := range subjects {
		if s.Kind != rbacv1.ServiceAccountKind || s.Name != g.account || s.Namespace != home {
			g.complain(where, "binds rights to %s %s/%s", s.Kind, s.Namespace, s.Name)
		}
	}
}

func (g *grants) rights() []right {
	var all []right
	for role, rules := range g.roles {
		if !g.bound[role] {
			g.complain(role, "the role is bound to nobody")
			continue
		}
		scope, _, _ := strings.Cut(role, "/")
		for _, rule := range rules {
			all = append(all, flatten(scope, rule)...)
		}
	}
	for role := range g.bound {
		if _, ok := g.roles[role]; !ok {
			g.complain(role, "a binding names a role that is not there")
		}
	}
	return all
}

// flatten writes a right that is limited to names as resource=name.
func flatten(scope string, rule rbacv1.PolicyRule) []right {
	var all []right
	for _, group := range rule.APIGroups {
		if group == "" {
			group = "core"
		}
		for _, resource := range rule.Resources {
			if len(rule.ResourceNames) > 0 {
				resource += "=" + strings.Join(rule.ResourceNames, ",")
			}
			for _, verb := range rule.Verbs {
				all = append(all, right{scope, group, resource, verb})
			}
		}
	}
	return all
}

// compare finds rights that are needed and not granted, and granted and not needed. Exactly what is needed is granted: a right
// too many is a risk, and a right too few is a feature that silently does not work.
func compare(where string, got, want []right) []Finding {
	var found []Finding
	for _, r := range want {
		if !slices.Contains(got, r) {
			found = append(found, Finding{"rights", where, "needed and not granted: " + r.String()})
		}
	}
	for i, r := range got {
		if !slices.Contains(want, r) {
			found = append(found, Finding{"rights", where, "granted and not needed: " + r.String()})
		}
		if slices.Contains(got[:i], r) {
			found = append(found, Finding{"rights", where, "granted twice: " + r.String()})
		}
	}
	return found
}

// readRecord reads verbs that a program was seen to use, one a line:
//
//	namespace group resource verb
//
// The namespace is that of the request, or * for what has none; the group without a name is called core; a subresource follows
// its resource after a slash; what follows a # is a comment.
func readRecord(src io.Reader) ([]right, error) {
	var all []right
	lines := bufio.NewScanner(src)
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(line)
		switch len(fields) {
		case 0:
		case 4:
			all = append(all, right{fields[0], fields[1], fields[2], fields[3]})
		default:
			return nil, fmt.Errorf("line %d: want \"namespace group resource verb\", got %q", n, lines.Text())
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading recorded verbs: %w", err)
	}
	return all, nil
}

// everybody are rights that Kubernetes gives to every authenticated user.
var everybody = []right{
	{everywhere, "authorization.k8s.io", "selfsubjectaccessreviews", "create"},
	{everywhere, "authorization.k8s.io", "selfsubjectrulesreviews", "create"},
	{everywhere, "authentication.k8s.io", "selfsubjectreviews", "create"},
}

// covers finds recorded verbs that no grant covers. A grant everywhere covers every namespace.
func covers(where string, got, recorded []right) []Finding {
	var found []Finding
	for _, r := range recorded {
		wide := right{everywhere, r.group, r.resource, r.verb}
		if !slices.Contains(got, r) && !slices.Contains(got, wide) && !slices.Contains(everybody, wide) && !named(got, r) {
			found = append(found, Finding{"rights", where, "used and not granted: " + r.String()})
		}
	}
	return found
}

// named: the record does not say which object it was, so a right on named objects covers it in its namespace.
func named(got []right, r right) bool {
	return slices.ContainsFunc(got, func(g right) bool {
		resource, _, isNamed := strings.Cut(g.resource, "=")
		return isNamed && resource == r.resource && (g.scope == r.scope || g.scope == everywhere) && g.group == r.group && g.verb == r.verb
	})
}
