// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const snapshotStatus = `{"status":{"boundVolumeSnapshotContentName":"kept","creationTime":"2026-01-02T03:04:05Z",
"readyToUse":true,"restoreSize":"1Gi","error":{"time":"2026-01-02T03:04:05Z","message":"m"},
"volumeGroupSnapshotName":"g"}}`

const contentStatus = `{"status":{"snapshotHandle":"h","creationTime":1700000000000000001,"readyToUse":true,
"restoreSize":1073741824,"error":{"time":"2026-01-02T03:04:05Z","message":"m"}}}`

const fullContentSpec = `spec:
  source: {volumeHandle: v}
  volumeSnapshotRef: {apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshot, name: s, namespace: ns, uid: u, resourceVersion: "1"}
  deletionPolicy: Retain
  driver: d
  volumeSnapshotClassName: k
  sourceVolumeMode: Filesystem`

// olderDefinitions are those of the client module that the sidecars are built with, which know no rules yet.
func olderDefinitions(t *testing.T) []string {
	t.Helper()
	const module = "github.com/kubernetes-csi/external-snapshotter/client/v6"
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "config/crd/snapshot.storage.k8s.io_*.yaml"))
	if err != nil || len(files) != 3 {
		t.Fatalf("found %v, %v; want three definitions", files, err)
	}
	return files
}

// Decisive for clusters that switch: applying our definitions must lose no field of what is stored, and must not be
// refused where v1beta1 was stored once.
func TestDefinitionsApplyOverOlderOnesWithoutLoss(t *testing.T) {
	c := sharedCluster(t)
	if err := c.Apply(t.Context(), olderDefinitions(t)...); err != nil {
		t.Fatal(err)
	}
	crds := c.Dynamic().Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	for _, plural := range []string{"volumesnapshots", "volumesnapshotcontents", "volumesnapshotclasses"} {
		_, err := crds.Patch(t.Context(), plural+".snapshot.storage.k8s.io", types.MergePatchType,
			[]byte(`{"status":{"storedVersions":["v1beta1","v1"]}}`), metav1.PatchOptions{}, "status")
		if err != nil {
			t.Fatal(err)
		}
	}
	before := map[string]map[string]any{}
	for _, row := range []struct{ kind, body, status string }{
		{"VolumeSnapshot", "spec: {volumeSnapshotClassName: k, source: {persistentVolumeClaimName: c}}", snapshotStatus},
		{content, fullContentSpec, contentStatus},
		{"VolumeSnapshotClass", "driver: d\ndeletionPolicy: Delete\nparameters: {a: b}", ""},
	} {
		client, object := sample(t, c, row.kind, "kept", row.body)
		created, err := client.Create(t.Context(), object, metav1.CreateOptions{})
		if err == nil && row.status != "" {
			created, err = client.Patch(t.Context(), "kept", types.MergePatchType, []byte(row.status), metav1.PatchOptions{}, "status")
		}
		if err != nil {
			t.Fatal(err)
		}
		before[row.kind] = created.Object
	}
	// Applied twice: an upgrade is repeated by everyone who keeps manifests in a repository.
	for range 2 {
		if err := c.Apply(t.Context(), definitions); err != nil {
			t.Fatal(err)
		}
	}
	for kind, want := range before {
		client, _ := sample(t, c, kind, "kept", "")
		got, err := client.Get(t.Context(), "kept", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.Object); diff != "" {
			t.Errorf("%s changed (-before +after):\n%s", kind, diff)
		}
	}
	checkGroupHandleIsKept(t, c)
}

// The handle of the group decides which call may delete a member, so a definition that prunes it loses data.
func checkGroupHandleIsKept(t *testing.T, c *Cluster) {
	t.Helper()
	client, _ := sample(t, c, content, "kept", "")
	_, err := client.Patch(t.Context(), "kept", types.MergePatchType,
		[]byte(`{"status":{"volumeGroupSnapshotHandle":"group"}}`), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(t.Context(), definitions); err != nil {
		t.Fatal(err)
	}
	got, err := client.Get(t.Context(), "kept", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	status, _ := got.Object["status"].(map[string]any)
	if status["volumeGroupSnapshotHandle"] != "group" {
		t.Errorf("the status is now %v", status)
	}
}
