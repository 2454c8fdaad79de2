// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

func TestOrdersWithoutSense(t *testing.T) {
	ok := Order{Namespace: "ns", Name: "old", Handle: "h", Class: "c"}
	for want, edit := range map[string]func(*Order){
		"say either --handle":                  func(o *Order) { o.Handle = "" },
		"or --content":                         func(o *Order) { o.Content = "c" },
		"--class goes with --handle":           func(o *Order) { o.Handle, o.Content = "", "c" },
		"--volume-mode goes with --handle":     func(o *Order) { o.Handle, o.Class, o.Content, o.VolumeMode = "", "", "c", "Block" },
		"--deletion-policy=Keep: use Delete":   func(o *Order) { o.Policy = "Keep" },
		"--volume-mode=disk: use Filesystem":   func(o *Order) { o.VolumeMode = "disk" },
		`"Old" cannot be the name of a Volume`: func(o *Order) { o.Name = "Old" },
		"of which driver? say --class, or":     func(o *Order) { o.Class = "" },
		"say --class, or --deletion-policy=":   func(o *Order) { o.Class, o.Driver = "", "d" },
	} {
		o := ok
		edit(&o)
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
	if err := ok.Check(); err != nil {
		t.Error(err)
	}
}

func ofOther(c *snapv1.VolumeSnapshotClass) { c.Driver = "other" }

// TestRefusals: whatever could take data from somebody is refused before anything is written.
func TestRefusals(t *testing.T) {
	class := kit.SnapshotClass(kit.SnapshotClassName)
	other := kit.Snapshot("other", "data")
	byContent := Order{Namespace: kit.Namespace, Name: "again", Content: "kept"}
	old := retained()
	ofOld := Order{Namespace: kit.Namespace, Name: "again", Content: old.Name}
	edited := func(o Order, edit func(*Order)) Order { edit(&o); return o }
	for _, c := range []struct {
		name    string
		objects []kube.Object
		order   Order
		want    string
	}{
		{"class missing", nil, byHandle, "there is no VolumeSnapshotClass snap: there is none at all, so create one; without a class say --driver-name and --deletion-policy"},
		{"class misspelt", []kube.Object{class, kit.SnapshotClass("other", ofOther)}, edited(byHandle, func(o *Order) { o.Class = "snp" }),
			"there is no VolumeSnapshotClass snp: did you mean snap? name one that is there: other (of driver other), snap (of driver " + kit.DriverName + "); without"},
		{"class missing, and none of the driver", []kube.Object{class}, edited(byHandle, func(o *Order) { o.Class, o.Driver = "gold", "other" }),
			"there is no VolumeSnapshotClass gold: driver other has none, so create one"},
		{"class of another driver, and one of the right one", []kube.Object{class, kit.SnapshotClass("gold", ofOther)}, edited(byHandle, func(o *Order) { o.Driver = "other" }),
			"VolumeSnapshotClass snap is of driver " + kit.DriverName + ", and other is asked for: name one that is there: gold (of driver other); without a class say --driver-name and --deletion-policy; " +
				"if the snapshot is of driver " + kit.DriverName + ", leave out what names the other one, --driver-name or --csi-address"},
		// The content would stay without a snapshot, and nobody could make one.
		{"namespace missing", []kube.Object{class}, edited(byHandle, func(o *Order) { o.Namespace = "team-x" }), "namespace team-x does not exist, and nothing was written: kubectl create namespace team-x, or"},
		{"namespace of the new owner missing", []kube.Object{kept()}, edited(byContent, func(o *Order) { o.Namespace = "team-x" }), "namespace team-x does not exist"},
		{"namespace going", []kube.Object{class, namespace("team-y", kit.Finalizers("x"), kit.Deleted)}, edited(byHandle, func(o *Order) { o.Namespace = "team-y" }), "namespace team-y is being deleted"},
		{"class of another driver", []kube.Object{class}, edited(byHandle, func(o *Order) { o.Driver = "other" }), "is of driver " + kit.DriverName + ", and other is asked for"},
		{"no driver", nil, edited(byHandle, func(o *Order) { o.Class, o.Policy = "", "Retain" }), "of which driver?"},
		{"no policy", nil, edited(byHandle, func(o *Order) { o.Class, o.Driver = "", "d" }), "or --deletion-policy=Retain"},
		{"a bad secret", []kube.Object{kit.SnapshotClass(kit.SnapshotClassName, withSecret, func(c *snapv1.VolumeSnapshotClass) {
			delete(c.Parameters, wellknown.ParamSnapshotterSecretName)
		})}, byHandle, "the secret of VolumeSnapshotClass"},
		{"imported for another", []kube.Object{class, kit.NamedContent(imported, func(c *kube.Content) { c.Spec.Source.SnapshotHandle = kit.Ptr("snap-1") })}, byHandle,
			"is imported already: VolumeSnapshotContent " + imported + " is for VolumeSnapshot default/data-snapshot"},
		// Two contents of one snapshot: deleting one would take the data of the other away.
		{"known by another content", []kube.Object{class, kit.NamedContent("x", func(c *kube.Content) { c.Spec.Source.SnapshotHandle = kit.Ptr("snap-1") })}, byHandle,
			"VolumeSnapshotContent x has the snapshot already"},
		{"taken here", []kube.Object{class, kit.Content(other, "vol-1", kit.Taken("snap-1"))}, byHandle, "has the snapshot already, for VolumeSnapshot default/other"},
		{"the snapshot's name is taken", []kube.Object{class, kit.Snapshot("old", "data")}, byHandle, "VolumeSnapshot default/old exists and is made from something else"},
		{"the snapshot is going", []kube.Object{class, kit.With(kit.Snapshot("old", "", kit.FromContent(imported)), kit.Finalizers("x"), kit.Deleted)}, byHandle, "is being deleted"},

		{"content missing", nil, byContent, "there is no VolumeSnapshotContent kept"},
		{"content missing, and another snapshot of the name", []kube.Object{kit.Snapshot("again", "", kit.FromContent("x")), kit.NamedContent("x")}, byContent, "there is no VolumeSnapshotContent kept"},
		{"content going", []kube.Object{kit.With(kept(), kit.Finalizers("x"), kit.Deleted)}, byContent, "VolumeSnapshotContent kept is being deleted"},
		{"content of another driver", []kube.Object{kept()}, edited(byContent, func(o *Order) { o.Driver = "other" }), "is of driver"},
		{"member of a group", []kube.Object{kept(func(c *kube.Content) { kube.SetAnnotation(c, wellknown.AnnGroupSnapshotHandle, "g") })}, byContent, "is a member of the group snapshot g"},
		{"its snapshot lives", []kube.Object{kept(func(c *kube.Content) {
			c.Spec.VolumeSnapshotRef.Name, c.Spec.VolumeSnapshotRef.UID = "other", other.UID
		}), other}, byContent, "is that of VolumeSnapshot default/other, which is there"},
		{"a snapshot waits for it", []kube.Object{kept(func(c *kube.Content) { c.Spec.VolumeSnapshotRef.UID = "" }), kit.Snapshot("data-snapshot", "", kit.FromContent("kept"))}, byContent,
			"is that of VolumeSnapshot default/data-snapshot, which is there"},
		{"never made", []kube.Object{retained(func(c *kube.Content) { c.Status = nil })}, ofOld, "does not say what the driver calls its snapshot"},
		{"goes with its snapshot", []kube.Object{retained(func(c *kube.Content) { c.Spec.DeletionPolicy = "Delete" })}, ofOld, "set it to Retain first"},
		{"of a living claim's snapshot", []kube.Object{kit.Snapshot("gone", "data"), retained()}, ofOld, "there is nothing to import"},
		{"of a living claim's snapshot that is asked for", []kube.Object{kit.Snapshot("gone", "data"), retained()}, edited(ofOld, func(o *Order) { o.Name = "gone" }), "there is nothing to import"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := world(t, c.objects...)
			if _, err := do(t, h, c.order); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if w := writes(h); len(w) > 0 {
				t.Errorf("wrote %v", w)
			}
		})
	}
}

// TestUnknownIsNotNo: what cannot be read may be there.
func TestUnknownIsNotNo(t *testing.T) {
	broken := errors.New("no answer")
	for _, c := range []struct {
		verb, resource string
		order          Order
	}{
		{"get", "namespaces", byHandle},
		{"get", "volumesnapshots", byHandle},
		{"get", "volumesnapshotcontents", byHandle},
		{"list", "volumesnapshotcontents", byHandle},
		{"get", "volumesnapshots", Order{Namespace: "team-b", Name: "again", Content: "kept"}},
	} {
		h := world(t, kit.SnapshotClass(kit.SnapshotClassName), kept())
		h.API.Fail(c.verb, c.resource, broken, 0)
		if _, err := do(t, h, c.order); !errors.Is(err, broken) || len(writes(h)) > 0 {
			t.Errorf("%+v: %v, wrote %v", c, err, writes(h))
		}
	}
}

// TestClassesThatMayNotBeListed: the names of other classes are help and no more.
func TestClassesThatMayNotBeListed(t *testing.T) {
	h := world(t)
	h.API.Deny("list", "volumesnapshotclasses")
	if _, err := do(t, h, byHandle); err == nil || !strings.Contains(err.Error(), "name one that is there, which kubectl get volumesnapshotclasses lists; without") {
		t.Error(err)
	}
	h = world(t)
	for n := range shown + 2 {
		h.Put(kit.SnapshotClass(fmt.Sprintf("class-%02d", n)))
	}
	if _, err := do(t, h, byHandle); err == nil || !strings.Contains(err.Error(), "class-07 (of driver "+kit.DriverName+"), 2 more; without") {
		t.Error(err)
	}
}

// TestNamespaceThatMayNotBeRead: rights on namespaces are seldom given, and not needed to write in one.
func TestNamespaceThatMayNotBeRead(t *testing.T) {
	h := world(t, kit.SnapshotClass(kit.SnapshotClassName))
	h.API.Deny("get", "namespaces")
	if said := mustDo(t, h, byHandle); !strings.Contains(said, "VolumeSnapshot default/old created") {
		t.Error(said)
	}
}

// TestHalfway: who is told of a failure alone does not know that a content is there by now, and makes another by hand.
func TestHalfway(t *testing.T) {
	full := apierrors.NewForbidden(schema.GroupResource{Resource: "volumesnapshots"}, "old", errors.New("exceeded quota"))
	h := world(t, kit.SnapshotClass(kit.SnapshotClassName))
	h.API.Fail("create", "volumesnapshots", full, 2)
	for _, wrote := range []int{2, 3} { // the second time the content is there already
		_, err := do(t, h, byHandle)
		if !errors.Is(err, full) || !strings.Contains(err.Error(), "exceeded quota; VolumeSnapshotContent "+imported+" is there and stays, for VolumeSnapshot default/old: the same command, given again, completes the import") {
			t.Error(err)
		}
		if got := writes(h); len(got) != wrote {
			t.Errorf("wrote %v", got)
		}
	}
	mustDo(t, h, byHandle)
	if got := strings.Join(writes(h), ", "); got != "create volumesnapshotcontents, create volumesnapshots, create volumesnapshots, create volumesnapshots" {
		t.Errorf("wrote %s", got)
	}
}

// TestSomebodyElseWasQuicker would catch a plan that is carried out on what it no longer describes.
func TestSomebodyElseWasQuicker(t *testing.T) {
	h := world(t, kept())
	o := Order{Namespace: kit.Namespace, Name: "again", Content: "kept"}
	h.API.Script(kit.Rule{Verb: "patch", Resource: "volumesnapshotcontents", Times: 1, Meanwhile: func() {
		_, err := kube.Patch(t.Context(), h.API, contentNamed(t, h, "kept"), func(c *kube.Content) { c.Spec.VolumeSnapshotRef.UID = "another" })
		if err != nil {
			t.Error(err)
		}
	}})
	if _, err := do(t, h, o); !kube.IsConflict(err) || !strings.Contains(err.Error(), "look and ask again") {
		t.Error(err)
	}
	if c := contentNamed(t, h, "kept"); c.Spec.VolumeSnapshotRef.UID != "another" {
		t.Errorf("content %+v", c.Spec)
	}
}
