// SPDX-License-Identifier: Apache-2.0

package content

import (
	"errors"
	"strings"
	"testing"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// sharing puts a second content of the same snapshot at the driver into a settled world.
func sharing(t *testing.T, mods ...func(*kube.Content)) (*kit.Harness, *kube.Content, *kube.Content) {
	t.Helper()
	h, _ := start(t)
	c := bound(h)
	h.Settle()
	other := kit.NamedContent("other", append([]func(*kube.Content){func(o *kube.Content) {
		o.Finalizers = []string{wellknown.FinalizerContent}
		o.Spec.DeletionPolicy = snapv1.VolumeSnapshotContentRetain
		o.Spec.Source.SnapshotHandle = now(h, c).Status.SnapshotHandle
	}}, mods...)...)
	h.Put(kit.Snapshot("alive", "", kit.FromContent(other.Name)), other)
	h.Settle()
	return h, c, other
}

// TestSharedHandleIsNotDeleted (I3): an administrator has imported the snapshot a second time, to keep it. A program that looks
// at one content alone destroys what the other one holds.
func TestSharedHandleIsNotDeleted(t *testing.T) {
	for name, row := range map[string]struct {
		mod     func(*kube.Content)
		deletes bool
	}{
		"kept":                  {func(*kube.Content) {}, false},
		"to be deleted later":   {func(o *kube.Content) { o.Spec.DeletionPolicy = snapv1.VolumeSnapshotContentDelete }, false},
		"another handle":        {func(o *kube.Content) { o.Spec.Source.SnapshotHandle = kit.Ptr("x") }, true},
		"of another driver":     {func(o *kube.Content) { o.Spec.Driver = "other" }, true},
		"going, and kept alive": {func(o *kube.Content) { kit.Deleted(o); o.Spec.VolumeSnapshotRef.Name = "alive" }, false},
		"going":                 {func(o *kube.Content) { kit.Deleted(o); o.Finalizers = []string{"example.com/x"} }, true},
	} {
		h, c, _ := sharing(t, row.mod)
		deleteBoth(h, c)
		h.Settle()
		if deleted := len(h.Driver.Calls("DeleteSnapshot")) > 0; deleted != row.deletes {
			t.Errorf("%s: deleted at the driver: %v\n%s", name, deleted, h.Trace())
		}
		if now(h, c) != nil {
			t.Errorf("%s: the content cannot go", name)
		}
		told := strings.Contains(strings.Join(h.Recorder.Events(), "\n"), "VolumeSnapshotContent other has it too")
		if told == row.deletes {
			t.Errorf("%s: events %v", name, h.Recorder.Events())
		}
	}
}

func TestSharedHandleGoesWithTheLast(t *testing.T) {
	h, c, other := sharing(t, func(o *kube.Content) { o.Spec.DeletionPolicy = snapv1.VolumeSnapshotContentDelete })
	deleteBoth(h, c)
	h.Settle()
	kit.Remove[*kube.Content](h.API, kube.KeyOf(other))
	h.Settle()
	if len(h.Driver.Calls("DeleteSnapshot")) != 1 || len(kit.All[*kube.Content](h.API)) > 0 {
		t.Errorf("left: %v\n%s", h.State(), h.Trace())
	}
}

// TestSharedHandleOfAContentThatOthersHold: what was given up is not deleted later, when the other content has been let go with
// its data.
func TestSharedHandleOfAContentThatOthersHold(t *testing.T) {
	h, c, other := sharing(t)
	kit.Edit(h.API, kube.KeyOf(c), func(c *kube.Content) { kube.AddFinalizer(c, "example.com/backup") })
	deleteBoth(h, c)
	h.Settle()
	kit.Remove[*kube.Content](h.API, kube.KeyOf(other))
	h.Settle()
	kit.Edit(h.API, kube.KeyOf(c), func(c *kube.Content) { kube.SetAnnotation(c, "x", "1") })
	h.Settle()
	if got := now(h, c); len(h.Driver.Calls("DeleteSnapshot")) > 0 || got.Status.SnapshotHandle != nil || len(got.Finalizers) != 1 {
		t.Errorf("%v %+v\n%s", got.Finalizers, got.Status, h.Trace())
	}
}

func TestSharerThatCannotBeReadIsAwaited(t *testing.T) {
	h, c, other := sharing(t)
	h.API.Script(kit.Rule{Verb: "get", Resource: "volumesnapshotcontents", Name: other.Name, Err: apierrors.NewInternalError(errors.New("etcd"))})
	deleteBoth(h, c)
	h.Horizon = time.Minute
	h.Settle()
	if len(h.Driver.Calls("DeleteSnapshot")) > 0 || now(h, c) == nil {
		t.Errorf("unknown is not no\n%s", h.Trace())
	}
}

// TestEditedReference (I3): the content's reference was edited, and the content deleted. The snapshot that was taken lives, and
// keeps its data until it is deleted itself.
func TestEditedReference(t *testing.T) {
	for name, edit := range map[string]func(*kube.Content){
		"another uid": func(c *kube.Content) { c.Spec.VolumeSnapshotRef.UID = "x" },
		"another that is going": func(c *kube.Content) {
			c.Spec.VolumeSnapshotRef.Name, c.Spec.VolumeSnapshotRef.UID = "going", kit.UIDOf("volumesnapshots", kit.Namespace, "going", 0)
		},
		"another name":              func(c *kube.Content) { c.Spec.VolumeSnapshotRef.Name = "x" },
		"another name, without uid": func(c *kube.Content) { c.Spec.VolumeSnapshotRef.Name, c.Spec.VolumeSnapshotRef.UID = "x", "" },
	} {
		for _, row := range []struct {
			knows bool
			sees  func(*Deps)
		}{{false, func(*Deps) {}}, {true, func(*Deps) {}}, {false, unseen}, {true, unseen}} {
			h, _ := start(t, row.sees)
			c := bound(h)
			h.Put(kit.With(kit.Snapshot("going", "data"), kit.Finalizers("example.com/x"), kit.Deleted))
			h.Settle()
			if row.knows {
				kit.Edit(h.API, kube.Key{Namespace: kit.Namespace, Name: "snap"}, kit.BoundContent(c.Name))
			}
			kit.Edit(h.API, kube.KeyOf(c), edit)
			kit.Remove[*kube.Content](h.API, kube.KeyOf(c))
			h.Settle()
			if len(h.Driver.Calls("DeleteSnapshot")) > 0 || now(h, c) == nil {
				t.Errorf("%s: a living snapshot has lost its data\n%s", name, h.Trace())
			}
			kit.Remove[*snapv1.VolumeSnapshot](h.API, kube.Key{Namespace: kit.Namespace, Name: "snap"})
			mark(h, c)
			h.Settle()
			if len(h.Driver.Calls("DeleteSnapshot")) != 1 || now(h, c) != nil {
				t.Errorf("%s: left: %v\n%s", name, h.State(), h.Trace())
			}
		}
	}
}

// TestStrangersHoldNothing: naming a content in a spec does not keep it from going.
func TestStrangersHoldNothing(t *testing.T) {
	h, _ := start(t)
	c := bound(h)
	h.Settle()
	h.Put(kit.Snapshot("thief", "", kit.FromContent(c.Name)))
	kit.Edit(h.API, kube.Key{Namespace: kit.Namespace, Name: "snap"}, func(s *snapv1.VolumeSnapshot) { s.Finalizers = nil })
	deleteBoth(h, c)
	h.Settle()
	if len(h.Driver.Calls("DeleteSnapshot")) != 1 || now(h, c) != nil {
		t.Errorf("left: %v\n%s", h.State(), h.Trace())
	}
}

// TestReferenceThatLeadsNowhereIsSearchedFor (I3): without a cache of snapshots only a search tells whether one counts on the content. A program that
// takes a search that failed for an empty one deletes all the same; and one that searches before each deletion has a large cluster list all
// snapshots for each.
func TestReferenceThatLeadsNowhereIsSearchedFor(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "snapshot.storage.k8s.io", Resource: "volumesnapshots"}, "",
		errors.New(`User "system:serviceaccount:csi:driver" cannot list resource "volumesnapshots" in API group "snapshot.storage.k8s.io" at the cluster scope`))
	for name, failure := range map[string]error{"in vain": apierrors.NewInternalError(errors.New("etcd")), "without the right": forbidden} {
		h, _ := start(t, unseen)
		c := bound(h)
		h.Settle()
		kit.Edit(h.API, kube.KeyOf(c), func(c *kube.Content) { c.Spec.VolumeSnapshotRef.Name = "x" })
		h.API.Script(kit.Rule{Verb: "list", Resource: "volumesnapshots", Err: failure})
		kit.Remove[*kube.Content](h.API, kube.KeyOf(c))
		h.Horizon = 10 * time.Minute
		h.Settle()
		if len(h.Driver.Calls("DeleteSnapshot")) > 0 || now(h, c) == nil {
			t.Errorf("%s: unknown is not no\n%s", name, h.Trace())
		}
		told := strings.Join(h.Recorder.Events(), "\n")
		if says := strings.Contains(told, "deploy/snapshotter/rbac.yaml to system:serviceaccount:csi:driver"); says != (failure == forbidden) || strings.Count(told, "\n") > 1 {
			t.Errorf("%s: told %s", name, told)
		}
	}
	h, _ := start(t, unseen)
	c := bound(h)
	h.Settle()
	kit.Edit(h.API, kube.Key{Namespace: kit.Namespace, Name: "snap"}, kit.BoundContent(c.Name))
	deleteBoth(h, c)
	mark(h, c)
	h.Settle()
	for _, r := range h.API.Requests() {
		if r.Verb == "list" && r.Resource == "volumesnapshots" {
			t.Errorf("an ordinary deletion lists all snapshots\n%s", h.Trace())
		}
	}
	if now(h, c) != nil {
		t.Errorf("left: %v", h.State())
	}
}
