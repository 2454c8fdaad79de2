// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

const definitions = "../../deploy/crds"

func snapshotResource(plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: plural}
}

func clusterWithDefinitions(t *testing.T) *Cluster {
	t.Helper()
	c := sharedCluster(t)
	if err := c.Apply(t.Context(), definitions); err != nil {
		t.Fatal(err)
	}
	return c
}

// sample is an object whose spec is written in YAML, and how to reach it.
func sample(t *testing.T, c *Cluster, kind, name, body string) (dynamic.ResourceInterface, *unstructured.Unstructured) {
	t.Helper()
	manifest := fmt.Sprintf("apiVersion: snapshot.storage.k8s.io/v1\nkind: %s\nmetadata: {name: %s}\n%s\n", kind, name, body)
	objects, err := parseManifest([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	client, err := c.applier.resource(objects[0], "default")
	if err != nil {
		t.Fatal(err)
	}
	return client, objects[0]
}

// checkAnswer compares what the API server said with the message of a rule, or with nothing.
func checkAnswer(t *testing.T, err error, message string) {
	t.Helper()
	switch {
	case message == "" && err != nil:
		t.Errorf("refused: %v", err)
	case message != "" && err == nil:
		t.Errorf("accepted, want %q", message)
	case message != "" && !strings.Contains(err.Error(), message):
		t.Errorf("refused with %v, want %q", err, message)
	}
}

const content = "VolumeSnapshotContent"

// contentBody is a content with another value for one field of its spec.
func contentBody(replaced, by string) string {
	fields := map[string]string{
		"source":            "{volumeHandle: v}",
		"volumeSnapshotRef": "{name: s, namespace: ns}",
		"deletionPolicy":    "Delete",
		"driver":            "d",
	}
	if replaced != "" {
		fields[replaced] = by
	}
	var text strings.Builder
	text.WriteString("spec:\n")
	for name, value := range fields {
		fmt.Fprintf(&text, "  %s: %s\n", name, value)
	}
	return text.String()
}

func TestDefinitionsRefuseInvalidObjects(t *testing.T) {
	c := clusterWithDefinitions(t)
	const (
		oneSource  = "exactly one of volumeSnapshotContentName and persistentVolumeClaimName must be set"
		oneHandle  = "exactly one of volumeHandle and snapshotHandle must be set"
		noClass    = "volumeSnapshotClassName must not be the empty string when set"
		incomplete = "both spec.volumeSnapshotRef.name and spec.volumeSnapshotRef.namespace must be set"
	)
	for i, row := range []struct{ kind, body, message string }{
		{"VolumeSnapshot", "spec: {source: {persistentVolumeClaimName: c}}", ""},
		{"VolumeSnapshot", `spec: {source: {persistentVolumeClaimName: ""}}`, ""},
		{"VolumeSnapshot", "spec: {volumeSnapshotClassName: k, source: {volumeSnapshotContentName: c}}", ""},
		{"VolumeSnapshot", "spec: {source: {persistentVolumeClaimName: c, volumeSnapshotContentName: c}}", oneSource},
		{"VolumeSnapshot", "spec: {source: {}}", oneSource},
		{"VolumeSnapshot", `spec: {volumeSnapshotClassName: "", source: {persistentVolumeClaimName: c}}`, noClass},
		{"VolumeSnapshot", "spec: {}", "spec.source: Required value"},
		{"VolumeSnapshot", "", "spec: Required value"},
		{content, contentBody("", ""), ""},
		{content, contentBody("volumeSnapshotClassName", `""`), ""},
		{content, contentBody("sourceVolumeMode", "null"), ""},
		{content, contentBody("source", "{snapshotHandle: s}"), ""},
		{content, contentBody("source", "{}"), oneHandle},
		{content, contentBody("source", "{volumeHandle: v, snapshotHandle: s}"), oneHandle},
		{content, contentBody("volumeSnapshotRef", "{name: s}"), incomplete},
		{content, contentBody("volumeSnapshotRef", "{namespace: ns}"), incomplete},
		{content, contentBody("volumeSnapshotRef", "{}"), incomplete},
		{content, contentBody("deletionPolicy", "Keep"), `supported values: "Delete", "Retain"`},
		{content, contentBody("driver", "null"), "spec.driver: Required value"},
		{"VolumeSnapshotClass", "driver: d\ndeletionPolicy: Retain\nparameters: {a: b}", ""},
		{"VolumeSnapshotClass", "driver: d\ndeletionPolicy: Keep", `supported values: "Delete", "Retain"`},
		{"VolumeSnapshotClass", "deletionPolicy: Delete", "driver: Required value"},
		{"VolumeSnapshotClass", "driver: d", "deletionPolicy: Required value"},
		{"VolumeSnapshotClass", "driver: d\ndeletionPolicy: Delete\nparameters: {a: 1}", "parameters.a: Invalid value"},
	} {
		t.Run(fmt.Sprintf("%02d", i), func(t *testing.T) {
			client, object := sample(t, c, row.kind, fmt.Sprintf("create-%d", i), row.body)
			_, err := client.Create(t.Context(), object, metav1.CreateOptions{})
			checkAnswer(t, err, row.message)
		})
	}
}

func TestDefinitionsRefuseInvalidChanges(t *testing.T) {
	c := clusterWithDefinitions(t)
	const (
		ofClaim     = "spec: {source: {persistentVolumeClaimName: c}}"
		ofContent   = "spec: {source: {volumeSnapshotContentName: c}}"
		withClass   = "spec: {volumeSnapshotClassName: k, source: {volumeSnapshotContentName: c}}"
		existing    = "{snapshotHandle: s}"
		blockVolume = "Block"
	)
	for i, row := range []struct{ kind, body, patch, message string }{
		{"VolumeSnapshot", ofClaim, `{"spec":{"source":{"persistentVolumeClaimName":"d"}}}`, "persistentVolumeClaimName is immutable"},
		{"VolumeSnapshot", ofClaim, `{"spec":{"source":{"persistentVolumeClaimName":null}}}`, "persistentVolumeClaimName is required once set"},
		{"VolumeSnapshot", ofContent, `{"spec":{"source":{"volumeSnapshotContentName":"d"}}}`, "volumeSnapshotContentName is immutable"},
		{"VolumeSnapshot", ofContent, `{"spec":{"source":{"volumeSnapshotContentName":null}}}`, "volumeSnapshotContentName is required once set"},
		{"VolumeSnapshot", ofClaim, `{"spec":{"volumeSnapshotClassName":"late"}}`, ""},
		{"VolumeSnapshot", withClass, `{"spec":{"volumeSnapshotClassName":"other"}}`, ""},
		{"VolumeSnapshot", withClass, `{"spec":{"volumeSnapshotClassName":null}}`, ""},
		{content, contentBody("", ""), `{"spec":{"source":{"volumeHandle":"w"}}}`, "volumeHandle is immutable"},
		{content, contentBody("", ""), `{"spec":{"source":{"volumeHandle":null,"snapshotHandle":"s"}}}`, "volumeHandle is required once set"},
		{content, contentBody("source", existing), `{"spec":{"source":{"snapshotHandle":"t"}}}`, "snapshotHandle is immutable"},
		{content, contentBody("source", existing), `{"spec":{"source":{"snapshotHandle":null,"volumeHandle":"v"}}}`, "snapshotHandle is required once set"},
		{content, contentBody("sourceVolumeMode", blockVolume), `{"spec":{"sourceVolumeMode":"Filesystem"}}`, "sourceVolumeMode is immutable"},
		{content, contentBody("sourceVolumeMode", blockVolume), `{"spec":{"sourceVolumeMode":null}}`, "sourceVolumeMode is required once set"},
		{content, contentBody("", ""), `{"spec":{"sourceVolumeMode":"Block"}}`, ""},
		{content, contentBody("", ""), `{"spec":{"volumeSnapshotRef":{"uid":"u"}}}`, ""},
		{content, contentBody("", ""), `{"spec":{"volumeSnapshotRef":{"namespace":null}}}`, "both spec.volumeSnapshotRef.name and spec.volumeSnapshotRef.namespace must be set"},
		{content, contentBody("", ""), `{"spec":{"deletionPolicy":"Retain","driver":"e"}}`, ""},
	} {
		t.Run(fmt.Sprintf("%02d", i), func(t *testing.T) {
			client, object := sample(t, c, row.kind, fmt.Sprintf("change-%d", i), row.body)
			if _, err := client.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			_, err := client.Patch(t.Context(), object.GetName(), types.MergePatchType, []byte(row.patch), metav1.PatchOptions{})
			checkAnswer(t, err, row.message)
		})
	}
}

func TestDefinitionsNameShortNamesAndColumns(t *testing.T) {
	c := clusterWithDefinitions(t)
	list, err := c.Clientset().Discovery().ServerResourcesForGroupVersion("snapshot.storage.k8s.io/v1")
	if err != nil {
		t.Fatal(err)
	}
	shortNames := map[string][]string{}
	for _, resource := range list.APIResources {
		shortNames[resource.Name] = resource.ShortNames
	}
	want := map[string][]string{
		"volumesnapshots":        {"vs"},
		"volumesnapshots/status": nil,
		"volumesnapshotcontents": {"vsc", "vscs"}, "volumesnapshotcontents/status": nil,
		"volumesnapshotclasses": {"vsclass", "vsclasses"},
	}
	if diff := cmp.Diff(want, shortNames); diff != "" {
		t.Errorf("resources and short names (-want +got):\n%s", diff)
	}
	for plural, columns := range map[string]string{
		"volumesnapshots":        "Name ReadyToUse SourcePVC SourceSnapshotContent RestoreSize SnapshotClass SnapshotContent CreationTime Age",
		"volumesnapshotcontents": "Name ReadyToUse RestoreSize DeletionPolicy Driver VolumeSnapshotClass VolumeSnapshot VolumeSnapshotNamespace Age",
		"volumesnapshotclasses":  "Name Driver DeletionPolicy Age",
	} {
		data, err := c.Clientset().Discovery().RESTClient().Get().
			AbsPath("/apis/snapshot.storage.k8s.io/v1", plural).
			SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Raw()
		if err != nil {
			t.Fatal(err)
		}
		var table metav1.Table
		if err := json.Unmarshal(data, &table); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, column := range table.ColumnDefinitions {
			got = append(got, column.Name)
		}
		if !slices.Equal(got, strings.Fields(columns)) {
			t.Errorf("%s has columns %v, want %s", plural, got, columns)
		}
	}
}
