// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/csi-tandem/csi-tandem/test/rights"
)

// needed is what the table says of a program with all its features.
func needed(t *testing.T, program string) []right {
	t.Helper()
	rows, err := rights.Rows(rights.Complete(rights.Program(program)))
	if err != nil {
		t.Fatal(err)
	}
	var all []right
	for _, r := range rights.Expand(rows) {
		scope, resource := everywhere, r.Resource
		if r.Scope == rights.Home {
			scope = home
		}
		if r.Name != "" {
			resource += "=" + r.Name
		}
		all = append(all, right{scope, cmp.Or(r.Group, "core"), resource, r.Verb})
	}
	return all
}

// TestRights: the manifests grant what the table says, and all that was recorded from a run on a real API server.
func TestRights(t *testing.T) {
	for _, program := range []string{"provisioner", "snapshotter"} {
		t.Run(program, func(t *testing.T) {
			dir := "deploy/" + program
			manifests, found := Manifests(os.DirFS(root), dir)
			got, faults := grantedTo(manifests, "csi-"+program)
			found = append(append(found, faults...), compare(dir, got, needed(t, program))...)
			for _, f := range sorted(append(found, recordFaults(t, "verbs-"+program+".txt", got)...)) {
				t.Error(f)
			}
		})
	}
}

// recordFaults: a record is written by the end-to-end tests; without one the table stands alone.
func recordFaults(t *testing.T, file string, got []right) []Finding {
	t.Helper()
	record, err := os.Open("testdata/" + file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer record.Close()
	recorded, err := readRecord(record)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return covers("testdata/"+file, got, recorded)
}

const (
	account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: csi-x, namespace: csi-tandem}\n---\n"
	role    = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: x}\nrules: [{apiGroups: [\"\"], resources: [secrets], verbs: [get]}]\n---\n"
	binding = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: x}\nroleRef: {kind: ClusterRole, name: x, apiGroup: rbac.authorization.k8s.io}\nsubjects: [{kind: ServiceAccount, name: csi-x, namespace: csi-tandem}]\n"
)

func TestRightsFaults(t *testing.T) {
	secrets := []need{{everywhere, "core", "secrets", "get", ""}}
	tests := []struct {
		name, src string
		want      []need
		says      string
	}{
		{"exactly what is needed", account + role + binding, secrets, ""},
		{"a right too many", account + role + binding, nil, "granted and not needed: * core secrets get"},
		{"a right too few", account + role + binding, append([]need{{home, "core", "pods", "get", ""}}, secrets...), "needed and not granted: csi-tandem core pods get"},
		{"a wildcard is not the verb", account + strings.ReplaceAll(role, "[get]", "[get, '*']") + binding, secrets, "granted and not needed: * core secrets *"},
		{"twice", account + strings.ReplaceAll(role, "[get]", "[get, get]") + binding, secrets, "granted twice"},
		{"limited to names", account + strings.ReplaceAll(role, "verbs", "resourceNames: [a], verbs") + binding, []need{{everywhere, "core", "secrets=a", "get", ""}}, ""},
		{"bound to nobody", account + role, nil, "bound to nobody"},
		{"a role that is not there", account + binding, nil, "not there"},
		{"bound to another", account + role + strings.ReplaceAll(binding, "name: csi-x", "name: default"), secrets, "binds rights to"},
		{"no account", role + binding, secrets, "no such ServiceAccount"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			manifests, found := Manifests(fstest.MapFS{"deploy/x.yaml": {Data: []byte(tt.src)}}, "deploy")
			got, faults := grantedTo(manifests, "csi-x")
			expect(t, append(append(found, faults...), compare("deploy", got, expand(tt.want))...), tt.says)
		})
	}
}

func TestRecord(t *testing.T) {
	got := []right{
		{everywhere, "core", "secrets", "get"}, {home, "coordination.k8s.io", "leases", "get"}, {"kube-system", "coordination.k8s.io", "leases=l", "get"},
	}
	tests := []struct {
		name, record, says string
	}{
		{"a grant everywhere covers a namespace", "default core secrets get # restore", ""},
		{"a grant at home covers home", "csi-tandem coordination.k8s.io leases get", ""},
		{"a grant at home covers nothing else", "default coordination.k8s.io leases get", "used and not granted: default coordination.k8s.io leases get"},
		{"a grant on a name covers its namespace", "kube-system coordination.k8s.io leases get", ""},
		{"another verb", "default core secrets list", "used and not granted"},
		{"what everybody may", "* authorization.k8s.io selfsubjectaccessreviews create", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			recorded, err := readRecord(strings.NewReader("# head\n\n" + tt.record + "\n"))
			if err != nil || len(recorded) != 1 {
				t.Fatalf("read %v, error %v", recorded, err)
			}
			expect(t, covers("record", got, recorded), tt.says)
		})
	}
	if _, err := readRecord(strings.NewReader("core secrets get\n")); err == nil {
		t.Error("a line of three words was taken for a record")
	}
}
