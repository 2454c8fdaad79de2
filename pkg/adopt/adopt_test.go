// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"bytes"
	"strings"
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// world is an API server with two namespaces and some objects.
func world(t *testing.T, objects ...kube.Object) *kit.Harness {
	h := kit.New(t)
	h.Put(namespace(kit.Namespace), namespace("team-b"))
	h.Put(objects...)
	return h
}

func namespace(name string, mods ...func(metav1.Object)) kube.Object {
	return kit.With(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, mods...)
}

// do carries an order out and gives what it told.
func do(t *testing.T, h *kit.Harness, o Order) (string, error) {
	t.Helper()
	plan, err := FetchPlan(t.Context(), h.API, o)
	if err != nil {
		return "", err
	}
	var said bytes.Buffer
	err = plan.CreateAll(t.Context(), h.API, &said)
	return said.String(), err
}

func mustDo(t *testing.T, h *kit.Harness, o Order) string {
	t.Helper()
	said, err := do(t, h, o)
	if err != nil {
		t.Fatalf("%+v: %v", o, err)
	}
	return said
}

func contentNamed(t *testing.T, h *kit.Harness, name string) *kube.Content {
	t.Helper()
	c, err := kube.Fetch[*kube.Content](t.Context(), h.API, kube.Key{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// writes are the requests that change something.
func writes(h *kit.Harness) []string {
	var all []string
	for _, r := range h.API.Requests() {
		if r.Verb == "create" || r.Verb == "patch" || r.Verb == "delete" {
			all = append(all, r.Verb+" "+r.Resource)
		}
	}
	return all
}

var (
	byHandle = Order{Namespace: kit.Namespace, Name: "old", Handle: "snap-1", Class: kit.SnapshotClassName}
	imported = contentName(kit.DriverName, "snap-1")
)

func withSecret(c *snapv1.VolumeSnapshotClass) {
	c.Parameters = map[string]string{
		wellknown.ParamSnapshotterSecretName: "s-${volumesnapshot.name}", wellknown.ParamSnapshotterSecretNamespace: "${volumesnapshot.namespace}",
	}
}

// TestImportByHandle: the pair is what an administrator would have made by hand, the secret for the deletion included.
func TestImportByHandle(t *testing.T) {
	h := world(t, kit.SnapshotClass(kit.SnapshotClassName, withSecret))
	o := byHandle
	o.VolumeMode = "Block"
	said := mustDo(t, h, o)
	c := contentNamed(t, h, imported)
	s, err := kube.Fetch[*snapv1.VolumeSnapshot](t.Context(), h.API, o.key())
	if err != nil {
		t.Fatal(err)
	}
	ref := c.Spec.VolumeSnapshotRef
	switch {
	case *c.Spec.Source.SnapshotHandle != "snap-1", c.Spec.Source.VolumeHandle != nil, c.Spec.Driver != kit.DriverName,
		c.Spec.DeletionPolicy != snapv1.VolumeSnapshotContentDelete, *c.Spec.VolumeSnapshotClassName != kit.SnapshotClassName,
		*c.Spec.SourceVolumeMode != corev1.PersistentVolumeBlock:
		t.Errorf("content %+v", c.Spec)
	case ref.Namespace != kit.Namespace, ref.Name != "old", ref.UID != "", ref.Kind != "VolumeSnapshot":
		t.Errorf("content refers to %+v", ref)
	case c.Annotations[wellknown.AnnSnapshotDeletionSecretName] != "s-old", c.Annotations[wellknown.AnnSnapshotDeletionSecretNamespace] != kit.Namespace:
		t.Errorf("annotations %v", c.Annotations)
	case len(c.Finalizers) > 0:
		t.Errorf("finalizers %v: nothing would lift them from a content that is never bound", c.Finalizers)
	case *s.Spec.Source.VolumeSnapshotContentName != imported, s.Spec.VolumeSnapshotClassName != nil:
		t.Errorf("snapshot %+v", s.Spec)
	case !strings.Contains(said, "VolumeSnapshotContent "+imported+" created: snapshot snap-1 of driver "+kit.DriverName+", of class "+kit.SnapshotClassName+", deletionPolicy Delete\nVolumeSnapshot default/old created\n"):
		t.Errorf("said %q", said)
	}
	before := len(writes(h))
	if said := mustDo(t, h, o); len(writes(h)) != before || !strings.Contains(said, "nothing to do") {
		t.Errorf("asked again it said %q and wrote %v", said, writes(h)[before:])
	}
}

func TestImportWithoutClass(t *testing.T) {
	h := world(t)
	said := mustDo(t, h, Order{Namespace: kit.Namespace, Name: "old", Handle: "snap-1", Driver: kit.DriverName, Policy: "Retain"})
	if !strings.Contains(said, "without a class, deletionPolicy Retain") {
		t.Errorf("said %q", said)
	}
	if c := contentNamed(t, h, imported); c.Spec.DeletionPolicy != snapv1.VolumeSnapshotContentRetain || c.Spec.VolumeSnapshotClassName != nil {
		t.Errorf("content %+v", c.Spec)
	}
}

// kept is a content made by hand whose snapshot is gone; it still has the other's UID and mark.
func kept(mods ...func(*kube.Content)) *kube.Content {
	all := append([]func(*kube.Content){func(c *kube.Content) {
		c.Spec.DeletionPolicy = snapv1.VolumeSnapshotContentRetain
		c.Spec.VolumeSnapshotRef.UID = "uid-of-one-that-is-gone"
		kube.SetAnnotation(c, wellknown.AnnBeingDeleted, wellknown.AnnMarkYes)
	}}, mods...)
	return kit.NamedContent("kept", all...)
}

// TestRebindKeptContent would catch a re-binding that leaves the mark of the last snapshot's deletion: the content could then be
// deleted at the driver while its new snapshot lives.
func TestRebindKeptContent(t *testing.T) {
	h := world(t, kept())
	o := Order{Namespace: "team-b", Name: "again", Content: "kept", Policy: "Delete"}
	mustDo(t, h, o)
	c := contentNamed(t, h, "kept")
	ref := c.Spec.VolumeSnapshotRef
	if ref.Namespace != "team-b" || ref.Name != "again" || ref.UID != "" || c.Annotations[wellknown.AnnBeingDeleted] != "" || c.Spec.DeletionPolicy != "Delete" {
		t.Errorf("content refers to %+v, annotations %v, policy %s", ref, c.Annotations, c.Spec.DeletionPolicy)
	}
	before := len(writes(h))
	if mustDo(t, h, o); len(writes(h)) != before {
		t.Errorf("asked again it wrote %v", writes(h)[before:])
	}
}

// TestRebindAfterTheSnapshotWasMadeAgain: users make the snapshot first and find it misbound.
func TestRebindAfterTheSnapshotWasMadeAgain(t *testing.T) {
	h := world(t, kept(), kit.Snapshot("data-snapshot", "", kit.FromContent("kept")))
	o := Order{Namespace: kit.Namespace, Name: "data-snapshot", Content: "kept"}
	mustDo(t, h, o)
	if got := writes(h); len(got) != 1 || contentNamed(t, h, "kept").Spec.VolumeSnapshotRef.UID != "" {
		t.Errorf("wrote %v", got)
	}
}

// TestBoundContentIsLeftAlone would catch an import that clears the UID of a binding which is fine.
func TestBoundContentIsLeftAlone(t *testing.T) {
	s := kit.Snapshot("data-snapshot", "", kit.FromContent("kept"), kit.BoundContent("kept"))
	h := world(t, s, kept(func(c *kube.Content) { c.Spec.VolumeSnapshotRef.UID = s.UID }))
	o := Order{Namespace: kit.Namespace, Name: "data-snapshot", Content: "kept"}
	if said := mustDo(t, h, o); len(writes(h)) != 0 || !strings.Contains(said, "nothing to do") {
		t.Errorf("said %q, wrote %v", said, writes(h))
	}
	o.Policy = "Delete"
	mustDo(t, h, o)
	if c := contentNamed(t, h, "kept"); c.Spec.DeletionPolicy != "Delete" || c.Spec.VolumeSnapshotRef.UID != s.UID {
		t.Errorf("content %+v", c.Spec)
	}
}

// retained is a content that was made for a snapshot of a claim, with all that the next owner needs.
func retained(mods ...func(*kube.Content)) *kube.Content {
	gone := kit.Snapshot("gone", "data")
	all := append([]func(*kube.Content){kit.Taken("snap-1"), func(c *kube.Content) {
		c.Spec.DeletionPolicy = snapv1.VolumeSnapshotContentRetain
		c.Spec.SourceVolumeMode = kit.Ptr(corev1.PersistentVolumeBlock)
		c.Labels = map[string]string{wellknown.LabelManagedBy: "n1"}
		c.Finalizers = []string{wellknown.FinalizerContent}
		for key, value := range map[string]string{
			wellknown.AnnSnapshotDeletionSecretName: "s", wellknown.AnnSnapshotDeletionSecretNamespace: "ns", wellknown.AnnBeingDeleted: "yes",
		} {
			kube.SetAnnotation(c, key, value)
		}
	}}, mods...)
	return kit.Content(gone, "vol-1", all...)
}

// TestTakeOver (SW-20, B059): a retained content of a claim's snapshot cannot be bound again; its place is taken. The old one goes only
// after the new pair is there.
func TestTakeOver(t *testing.T) {
	old := retained()
	h := world(t, old)
	o := Order{Namespace: kit.Namespace, Name: "again", Content: old.Name}
	mustDo(t, h, o)
	c := contentNamed(t, h, imported)
	if c.Spec.DeletionPolicy != "Retain" || *c.Spec.SourceVolumeMode != corev1.PersistentVolumeBlock || c.Labels[wellknown.LabelManagedBy] != "n1" ||
		c.Annotations[wellknown.AnnSnapshotDeletionSecretName] != "s" || c.Annotations[wellknown.AnnBeingDeleted] != "" {
		t.Errorf("content %+v %+v", c.ObjectMeta, c.Spec)
	}
	if got := strings.Join(writes(h), ", "); got != "create volumesnapshotcontents, create volumesnapshots, delete volumesnapshotcontents" {
		t.Errorf("wrote %s", got)
	}
	// The running snapshotter lifts the finalizer.
	if _, err := kube.Patch(t.Context(), h.API, contentNamed(t, h, old.Name), func(c *kube.Content) { c.Finalizers = nil }); err != nil {
		t.Fatal(err)
	}
	before := len(writes(h))
	if said := mustDo(t, h, o); len(writes(h)) != before || !strings.Contains(said, "nothing to do") {
		t.Errorf("asked again it said %q and wrote %v", said, writes(h)[before:])
	}
}
