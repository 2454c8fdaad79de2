// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

const grouped = `{
	"metadata": {"name": "c", "annotations": {"keep": "me"}},
	"spec": {"driver": "tandem.csi.example", "deletionPolicy": "Delete", "source": {"volumeHandle": "v"},
		"volumeSnapshotRef": {"namespace": "default", "name": "s", "uid": "u"}},
	"status": {"creationTime": 1767268800123456789, "volumeGroupSnapshotHandle": "group-1"}
}`

func TestGroupHandleIsReadFromStatusOrAnnotation(t *testing.T) {
	var content kube.Content
	if err := json.Unmarshal([]byte(grouped), &content); err != nil {
		t.Fatal(err)
	}
	if content.GroupHandle() != "group-1" || *content.Status.CreationTime != 1767268800123456789 || content.Spec.Driver != kit.DriverName {
		t.Errorf("got %q, %+v", content.GroupHandle(), content)
	}
	for name, copied := range map[string]*kube.Content{
		"deep copy": content.DeepCopy(), "object copy": content.DeepCopyObject().(*kube.Content),
		"list copy": &(&kube.ContentList{Items: []kube.Content{content}}).DeepCopyObject().(*kube.ContentList).Items[0],
	} {
		if copied.GroupHandle() != "group-1" {
			t.Errorf("%s loses the group", name)
		}
		copied.Annotations["keep"] = "changed"
		if content.Annotations["keep"] != "me" {
			t.Fatalf("%s shares its map", name)
		}
	}
	// Members of dynamic groups carry an annotation, before any status.
	member := kit.NamedContent("m")
	if member.GroupHandle() != "" {
		t.Error("an ordinary content has a group")
	}
	kube.SetAnnotation(member, wellknown.AnnGroupSnapshotHandle, "group-2")
	if member.GroupHandle() != "group-2" {
		t.Error("the annotation is not seen")
	}
}

func TestGroupHandleSurvivesEveryPatch(t *testing.T) {
	h := kit.New(t)
	kit.PutJSON[*kube.Content](h.API, grouped)
	key := kube.Key{Name: "c"}
	content, err := kube.Fetch[*kube.Content](h.Ctx, h.API, key)
	if err != nil {
		t.Fatal(err)
	}
	content, err = kube.PatchStatus(h.Ctx, h.API, content, func(c *kube.Content) {
		c.Status.SnapshotHandle, c.Status.ReadyToUse = kit.Ptr("snap-1"), kit.Ptr(true)
	})
	if err != nil {
		t.Fatal(err)
	}
	content, err = kube.Patch(h.Ctx, h.API, content, func(c *kube.Content) { kube.SetAnnotation(c, "a", "b") })
	if err != nil {
		t.Fatal(err)
	}
	if content.GroupHandle() != "group-1" || *content.Status.SnapshotHandle != "snap-1" {
		t.Errorf("the answers lost something: %q %+v", content.GroupHandle(), content.Status)
	}
	if raw := kit.Raw[*kube.Content](h.API, key); !strings.Contains(raw, `"volumeGroupSnapshotHandle":"group-1"`) {
		t.Errorf("the server lost the group: %s", raw)
	}
	if found, ok := h.Stores.Contents.Lookup(key); !ok || found.GroupHandle() != "group-1" {
		t.Error("the cache lost the group")
	}
}

func TestContentThatDoesNotDecode(t *testing.T) {
	for _, document := range []string{`{"spec":3}`, `{"status":{"volumeGroupSnapshotHandle":3}}`, `[]`} {
		if err := json.Unmarshal([]byte(document), &kube.Content{}); err == nil {
			t.Errorf("%s was read", document)
		}
	}
}

func TestContentIndexes(t *testing.T) {
	content := kit.NamedContent("c")
	got := map[string][]string{}
	for name, index := range kube.ContentIndexes() {
		got[name] = index(content)
	}
	want := map[string][]string{kube.BySnapshot: {"default/data-snapshot"}, kube.BySnapshotClass: {"snap"},
		kube.ByHandle: {"tandem.csi.example^handle-of-c"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	content.Spec.VolumeSnapshotClassName = nil
	if got := kube.ContentIndexes()[kube.BySnapshotClass](content); got != nil {
		t.Errorf("no class is found under %v", got)
	}
	if kit.Taken("t")(content); kube.ContentHandle(content) != "tandem.csi.example^t" {
		t.Errorf("the status tells the handle, not %q", kube.ContentHandle(content))
	}
	if made := kit.Content(kit.Snapshot("s", "data"), "v"); kube.ContentHandle(made) != "" || kube.ContentIndexes()[kube.ByHandle](made) != nil {
		t.Error("nothing has happened at the driver")
	}
}
