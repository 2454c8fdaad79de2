// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func names(objects []*unstructured.Unstructured) []string {
	var all []string
	for _, object := range objects {
		all = append(all, object.GetKind()+"/"+object.GetName())
	}
	return all
}

const severalDocuments = `# a comment alone is no document
---
apiVersion: v1
kind: ConfigMap
metadata: {name: one}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: two}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Secret, metadata: {name: three}}
- {apiVersion: v1, kind: Namespace, metadata: {name: four}}
`

func TestParseManifest(t *testing.T) {
	objects, err := parseManifest([]byte(severalDocuments))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"ConfigMap/one", "CustomResourceDefinition/two", "Secret/three", "Namespace/four"}
	if diff := cmp.Diff(want, names(objects)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	want = []string{"Namespace/four", "CustomResourceDefinition/two", "ConfigMap/one", "Secret/three"}
	if diff := cmp.Diff(want, names(inApplyOrder(objects))); diff != "" {
		t.Errorf("apply order (-want +got):\n%s", diff)
	}
}

func TestParseManifestRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"no kind":  "apiVersion: v1\nmetadata: {name: a}\n",
		"no name":  "apiVersion: v1\nkind: Secret\n",
		"no YAML":  "a: [b\n",
		"a scalar": "just words\n",
	} {
		_, err := parseManifest([]byte(text))
		if err == nil || !strings.Contains(err.Error(), "document 1") {
			t.Errorf("%s: got error %v, want one that names the document", name, err)
		}
	}
}

func TestParseFSReadsManifestsOnly(t *testing.T) {
	secret := func(name string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + "}\n")}
	}
	files := fstest.MapFS{
		"d/b.yaml": secret("b"), "d/a.yml": secret("a"), "d/e/c.json": secret("c"),
		"d/README.md": {Data: []byte("# not a manifest")}, "other.yaml": secret("no"), "named": secret("named"),
	}
	objects, err := parseFS(files, "d", "named")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Secret/a", "Secret/b", "Secret/c", "Secret/named"}, names(objects)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if _, err := parseFS(files, "missing"); err == nil {
		t.Error("a missing folder was read")
	}
}
