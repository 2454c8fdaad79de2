// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"sigs.k8s.io/yaml"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestInterrupted: whichever write fails, or is done and its answer lost, asking again ends with the same objects, and the
// snapshot always has a content.
func TestInterrupted(t *testing.T) {
	old := retained()
	for _, order := range []Order{byHandle, {Namespace: kit.Namespace, Name: "data-snapshot", Content: "kept"}, {Namespace: kit.Namespace, Name: "again", Content: old.Name}} {
		for n := range 3 {
			for _, done := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s%s write %d done %t", order.Handle, order.Content, n, done), func(t *testing.T) {
					h := world(t, kept())
					if order.Handle != "" {
						h.Put(kit.SnapshotClass(kit.SnapshotClassName))
					} else if order.Content == old.Name {
						h.Put(old)
					}
					cut(h, n, done)
					_, _ = do(t, h, order)
					mustDo(t, h, order)
					s, err := kube.Fetch[*snapv1.VolumeSnapshot](t.Context(), h.API, order.key())
					if err != nil {
						t.Fatal(err)
					}
					c := contentNamed(t, h, *s.Spec.Source.VolumeSnapshotContentName)
					if ref := c.Spec.VolumeSnapshotRef; ref.Name != order.Name || ref.UID != "" {
						t.Errorf("content refers to %+v", ref)
					}
					if order.Content == old.Name && contentNamed(t, h, old.Name).DeletionTimestamp == nil {
						t.Error("the old content is still there")
					}
				})
			}
		}
	}
}

// cut lets the nth write fail.
func cut(h *kit.Harness, n int, done bool) {
	writes := []struct{ verb, resource string }{{"create", "volumesnapshotcontents"}, {"create", "volumesnapshots"}, {"delete", "volumesnapshotcontents"}}
	h.API.Script(kit.Rule{Verb: writes[n].verb, Resource: writes[n].resource, Err: errors.New("connection reset"), Done: done, Times: 1})
	if n == 0 {
		h.API.Script(kit.Rule{Verb: "patch", Resource: "volumesnapshotcontents", Err: errors.New("connection reset"), Done: done, Times: 1})
	}
}

func dryRun(t *testing.T, h *kit.Harness, o Order) string {
	t.Helper()
	plan, err := FetchPlan(t.Context(), h.API, o)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := plan.WriteYAML(&text); err != nil {
		t.Fatal(err)
	}
	if w := writes(h); len(w) > 0 {
		t.Errorf("a dry run wrote %v", w)
	}
	return text.String()
}

const golden = `---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotContent
metadata:
  name: NAME
spec:
  deletionPolicy: Delete
  driver: tandem.csi.example
  source:
    snapshotHandle: snap-1
  volumeSnapshotClassName: CLASS
  volumeSnapshotRef:
    apiVersion: snapshot.storage.k8s.io/v1
    kind: VolumeSnapshot
    name: old
    namespace: default
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata:
  name: old
  namespace: default
spec:
  source:
    volumeSnapshotContentName: NAME
`

// TestDryRun: what is printed can be applied as it is.
func TestDryRun(t *testing.T) {
	want := strings.NewReplacer("NAME", imported, "CLASS", kit.SnapshotClassName).Replace(golden)
	if got := dryRun(t, world(t, kit.SnapshotClass(kit.SnapshotClassName)), byHandle); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	h := world(t, kept())
	got := dryRun(t, h, Order{Namespace: "team-b", Name: "again", Content: "kept", Policy: "Delete"})
	patch := `# kubectl patch volumesnapshotcontent kept --type=merge -p '{"metadata":{"annotations":{"snapshot.storage.kubernetes.io/volumesnapshot-being-deleted":null},` +
		`"resourceVersion":"` + contentNamed(t, h, "kept").ResourceVersion + `"},"spec":{"deletionPolicy":"Delete","volumeSnapshotRef":{"name":"again","namespace":"team-b","uid":null}}}'`
	if first, rest, _ := strings.Cut(got, "\n"); first != patch || !strings.Contains(rest, "volumeSnapshotContentName: kept") {
		t.Errorf("got\n%s\nwant\n%s", got, patch)
	}
	old := retained()
	got = dryRun(t, world(t, old), Order{Namespace: kit.Namespace, Name: "again", Content: old.Name})
	if !strings.Contains(got, "csi-tandem.io/taken-from: "+old.Name) || !strings.HasSuffix(got, "# then: kubectl delete volumesnapshotcontent "+old.Name+"\n") {
		t.Errorf("got\n%s", got)
	}
	for document := range strings.SplitSeq(got, "---\n") {
		if err := yaml.UnmarshalStrict([]byte(document), &map[string]any{}); err != nil {
			t.Error(err)
		}
	}
}

// TestDryRunOfWhatCannotBe: what a dry run prints can be applied, so that it refuses what the import would refuse.
func TestDryRunOfWhatCannotBe(t *testing.T) {
	o := byHandle
	o.Namespace = "team-x"
	if plan, err := FetchPlan(t.Context(), world(t, kit.SnapshotClass(kit.SnapshotClassName)).API, o); err == nil || !strings.Contains(err.Error(), "namespace team-x does not exist") {
		t.Errorf("%+v, %v", plan, err)
	}
}

func TestNameFollowsFromTheSnapshot(t *testing.T) {
	a, b := contentName("d", "h"), contentName("d", "h2")
	if a == b || a == contentName("dh", "") || contentName("d", "h") != a || len(a) > 63 {
		t.Errorf("%s, %s", a, b)
	}
}
