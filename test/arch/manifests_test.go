// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"os"
	"testing"
	"testing/fstest"
)

func TestManifestsDecode(t *testing.T) {
	manifests, found := Manifests(os.DirFS(root), "deploy", "examples")
	for _, f := range sorted(found) {
		t.Error(f)
	}
	if len(manifests) == 0 {
		t.Error("there is no manifest")
	}
}

func TestExamplesHangTogether(t *testing.T) {
	manifests, _ := Manifests(os.DirFS(root), "examples")
	for _, f := range sorted(Story(manifests)) {
		t.Error(f)
	}
}

const class = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: fast}\nprovisioner: d\n"

func TestManifestFaults(t *testing.T) {
	tests := []struct {
		name, src, want string
	}{
		{"a good one", class, ""},
		{"two documents and a comment", "# why\n---\n" + class + "---\n" + class, ""},
		{"an unknown field", class + "provisoner: e\n", "unknown field"},
		{"a doubled field", class + "provisioner: e\n", "already set"},
		{"a field of the wrong type", class + "parameters: [a]\n", "cannot unmarshal"},
		{"an unknown kind", "apiVersion: storage.k8s.io/v1\nkind: StorageGlass\n", "no kind \"StorageGlass\""},
		{"a snapshot's unknown field", "apiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshot\nspec: {sauce: {}}\n", "unknown field"},
		{"no kind", "a: b\n", "without apiVersion or kind"},
		{"no YAML", "a: b: c\n", "reading YAML"},
		{"a definition under a wrong name", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b}\nspec: {group: b, names: {plural: c}}\n", "defines \"c.b\""},
		{"a kustomization that misses a file", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [rbac.yaml]\n", "not there"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, found := Manifests(fstest.MapFS{"deploy/a.yaml": {Data: []byte(tt.src)}}, "deploy")
			expect(t, found, tt.want)
		})
	}
}

func TestStoryFaults(t *testing.T) {
	const (
		claim    = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: a}\nspec: {storageClassName: fast}\n"
		restore  = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: b}\nspec: {dataSource: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: s}}\n"
		pod      = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {volumes: [{name: v, persistentVolumeClaim: {claimName: a}}]}\n"
		snapshot = "apiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshot\nmetadata: {name: s}\nspec: {source: {persistentVolumeClaimName: a}}\n"
	)
	tests := []struct {
		name, src, want string
	}{
		{"whole", class + "---\n" + claim + "---\n" + pod + "---\n" + snapshot + "---\n" + restore, ""},
		{"a claim without its class", claim, `class "fast"`},
		{"a pod without its claim", pod, `claim "a"`},
		{"a snapshot without its claim", snapshot, `claim "a"`},
		{"a restore without its snapshot", restore, `snapshot "s"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			manifests, found := Manifests(fstest.MapFS{"examples/a.yaml": {Data: []byte(tt.src)}}, "examples")
			if len(found) > 0 {
				t.Fatal(found)
			}
			expect(t, Story(manifests), tt.want)
		})
	}
}
