// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// needs is what each program does with the API. Whoever adds an effect adds its verb here and in deploy/, in one commit.
var needs = map[string][]need{
	"provisioner": {
		{everywhere, "core", "persistentvolumes", "get list watch create patch delete", "volumes are made, protected, deleted; get is the live read before a deletion"},
		{everywhere, "core", "persistentvolumeclaims", "get list watch patch", "the selected node taken back; a clone's source protected"},
		{everywhere, "storage.k8s.io", "storageclasses", "get list watch", "parameters"},
		{everywhere, "core", "events", "create patch", "patch raises the count of an event"},
		{everywhere, "core", "secrets", "get", "live, at the moment of a call"},
		{everywhere, "core", "namespaces", "get", "labels that the driver is told, live, with --create-parameter-namespace-labels and -annotations only"},
		{everywhere, "storage.k8s.io", "csinodes", "get list watch", "topology keys"},
		{everywhere, "core", "nodes", "get list watch", "topology values"},
		{everywhere, "storage.k8s.io", "volumeattachments", "get list watch", "a volume still attached is not deleted"},
		{everywhere, "storage.k8s.io", "volumeattributesclasses", "get", "mutable parameters"},
		{everywhere, "snapshot.storage.k8s.io", "volumesnapshots", "get list watch patch", "restore; the snapshot protected meanwhile"},
		{everywhere, "snapshot.storage.k8s.io", "volumesnapshotcontents", "get", "the handle to restore from"},
		{everywhere, "gateway.networking.k8s.io", "referencegrants", "get list watch", "sources in another namespace"},
		{home, "coordination.k8s.io", "leases", "get list watch create patch", "leader election"},
		{home, "core", "configmaps", "get create patch", "the record of open attempts"},
		{home, "storage.k8s.io", "csistoragecapacities", "get list watch create patch delete", "capacity"},
		{home, "core", "pods", "get", "the owner of capacity objects"},
		{home, "apps", "replicasets", "get", "the owner of the owner"},
		{home, "apps", "daemonsets", "get", "the owner of the owner"},
	},
	"snapshotter": {
		{everywhere, "core", "events", "create patch", "patch raises the count of an event"},
		{everywhere, "core", "secrets", "get", "live, at the moment of a call"},
		{everywhere, "snapshot.storage.k8s.io", "volumesnapshotclasses", "get list watch", "parameters, the default class"},
		{everywhere, "snapshot.storage.k8s.io", "volumesnapshotcontents", "get list watch create patch delete", "the content is the order to the driver"},
		{everywhere, "snapshot.storage.k8s.io", "volumesnapshotcontents/status", "patch", "what the driver answered"},
		{everywhere, "snapshot.storage.k8s.io", "volumesnapshots", "get list watch patch", "finalizers; get is the live read before a deletion"},
		{everywhere, "snapshot.storage.k8s.io", "volumesnapshots/status", "patch", "ready and bound"},
		{everywhere, "core", "persistentvolumes", "get", "from the claim to its handle"},
		{everywhere, "core", "persistentvolumeclaims", "get list watch patch", "the source protected until it is cut"},
		{everywhere, "core", "nodes", "list watch", "which node's snapshotter has to take it, with --enable-distributed-snapshotting only"},
		{home, "coordination.k8s.io", "leases", "get list watch create patch", "leader election of both halves"},
		{"kube-system", "coordination.k8s.io", "leases=snapshot-controller-leader", "get list watch", "the sign of another binder"},
	},
}

// TestRights: the manifests grant what the table says, and all that was recorded from a run on a real API server.
func TestRights(t *testing.T) {
	for program, table := range needs {
		t.Run(program, func(t *testing.T) {
			dir := "deploy/" + program
			manifests, found := Manifests(os.DirFS(root), dir)
			got, faults := grantedTo(manifests, "csi-"+program)
			found = append(append(found, faults...), compare(dir, got, expand(table))...)
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
