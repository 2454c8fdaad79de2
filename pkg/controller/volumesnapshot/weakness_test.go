// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// Each test here names the wrong program that it catches, and was seen to fail against it.

func only(t *testing.T, h *kit.Harness) *kube.Content {
	t.Helper()
	contents := kit.All[*kube.Content](h.API)
	if len(contents) != 1 {
		t.Fatalf("%d contents", len(contents))
	}
	return contents[0]
}

// TestContentThatExistsAlready (S22, W5): another leader was faster. A program that takes AlreadyExists for success and
// goes on with what it wanted to write does not see what is there, and misses all that becomes of it.
func TestContentThatExistsAlready(t *testing.T) {
	h := kit.New(t)
	disk(h)
	s := kit.Snapshot("snap", "data")
	h.API.Script(kit.Rule{Verb: "create", Resource: "volumesnapshotcontents", Times: 1, Meanwhile: func() {
		h.Stores.Hold()
		// Made by a program that sets no finalizer and records nothing.
		h.Put(kit.Content(s, kit.VolumeHandle("pv-data"), func(c *kube.Content) { c.Spec.VolumeSnapshotClassName = kit.Ptr(kit.SnapshotClassName) }))
	}})
	both(h)
	h.Put(s)
	h.Horizon = 0
	h.Settle()
	if c := only(t, h); !kube.HasFinalizer(c, wellknown.FinalizerContent) {
		t.Error("what is there was not looked at")
	}
	h.Horizon = time.Minute
	h.Stores.Sync()
	h.Settle()
	wantReady("snap")(t, h)
	if c := only(t, h); !kube.HasFinalizer(c, wellknown.FinalizerContent) || len(h.Driver.Calls("CreateSnapshot")) != 1 {
		t.Errorf("taken over: %v", c.Finalizers)
	}
	kit.Edit(h.API, kube.KeyOf(only(t, h)), func(c *kube.Content) { c.Status.ReadyToUse = kit.Ptr(false) })
	h.Settle()
	userDeletes("snap")(h)
	h.Settle()
	wantNothing(t, h)
}

// TestContentIsHeldFromItsFirstMoment (W11): a program that adds the finalizer with a second write loses a content that is
// deleted between the two, while the driver works on it, and the snapshot at the driver with it.
func TestContentIsHeldFromItsFirstMoment(t *testing.T) {
	h := kit.New(t)
	disk(h)
	both(h)
	h.API.Script(kit.Rule{Verb: "create", Resource: "volumesnapshotcontents", Times: 1, Done: true,
		Err: apierrors.NewTimeoutError("slow", 1), Meanwhile: h.Stores.Hold})
	h.Horizon = 0
	userTakes("snap")(h)
	h.Settle()
	kit.Remove[*kube.Content](h.API, kube.KeyOf(only(t, h)))
	h.Stores.Sync()
	h.Horizon = time.Minute
	h.Settle()
	if c := only(t, h); c.DeletionTimestamp == nil {
		t.Error("the content went, and another one was made")
	}
	wantReady("snap")(t, h)
	userDeletes("snap")(h)
	h.Settle()
	wantNothing(t, h)
}

// TestNamesakesOfOtherKinds (W12): snapshot, claim and content have one name. A program that keeps kinds in one store, or
// keys of claims among those of snapshots, takes one for the other.
func TestNamesakesOfOtherKinds(t *testing.T) {
	h := kit.New(t)
	disk(h)
	h.Put(kit.NamedContent("data"))
	h.Driver.PutSnapshot("data", kit.VolumeHandle("pv-data"), 1<<30)
	both(h)
	userTakes("data")(h)
	h.Settle()
	h.Restart()
	both(h)
	h.Settle()
	wantReady("data")(t, h)
	userDeletes("data")(h)
	h.Settle()
	if _, there := kit.Read[*snapv1.VolumeSnapshot](h.API, key("data")); there || only(t, h).Name != "data" {
		t.Errorf("%v", h.State())
	}
	if claim, there := kit.Read[*corev1.PersistentVolumeClaim](h.API, key("data")); !there || len(claim.Finalizers) > 0 {
		t.Error("the claim of that name has suffered")
	}
}

// TestMemberAlone (W14): a content whose driver says that it belongs to a group, imported where nobody knows groups. A
// program that looks for the group crashes, or waits for it for ever.
func TestMemberAlone(t *testing.T) {
	h := kit.New(t)
	disk(h)
	kit.PutJSON[*kube.Content](h.API, `{"metadata":{"name":"old"},"spec":{"driver":"`+kit.DriverName+`","deletionPolicy":"Delete","source":
		{"snapshotHandle":"handle-of-old"},"volumeSnapshotRef":{"namespace":"default","name":"member"}},"status":{"volumeGroupSnapshotHandle":"g-1"}}`)
	h.Driver.PutSnapshot("old", kit.VolumeHandle("pv-data"), 1<<30)
	both(h)
	h.Put(kit.Snapshot("member", "", kit.FromContent("old")))
	h.Settle()
	wantReady("member")(t, h)
	if raw := kit.Raw[*kube.Content](h.API, kube.Key{Name: "old"}); !strings.Contains(raw, `"volumeGroupSnapshotHandle":"g-1"`) {
		t.Errorf("the group's handle is lost: %s", raw)
	}
	userDeletes("member")(h)
	h.Settle()
	if len(h.Driver.Calls("DeleteSnapshot")) > 0 || len(kit.All[*kube.Content](h.API)) > 0 {
		t.Errorf("S91 a member is deleted with its group: %v", h.State())
	}
}

// TestCacheIsNotWrittenBeforeTheServerAgreed (W17): the mark is refused once. A program that writes it into the cached
// object first believes it done, and deletes a content that no sidecar will touch.
func TestCacheIsNotWrittenBeforeTheServerAgreed(t *testing.T) {
	h := kit.New(t)
	disk(h)
	_, room := binder(h, All)
	h.Add(room)
	userTakes("snap")(h)
	h.Settle()
	kit.Edit(h.API, kube.KeyOf(only(t, h)), kit.Taken("handle-1"))
	h.Settle()
	h.API.Fail("patch", "volumesnapshotcontents", etcd, 1)
	h.Horizon = 0
	userDeletes("snap")(h)
	h.Settle()
	if cached, _ := h.Stores.Contents.Lookup(kube.KeyOf(only(t, h))); cached.Annotations[wellknown.AnnBeingDeleted] != "" {
		t.Error("the cache says what the server has refused")
	}
	h.Horizon = time.Minute
	h.Settle()
	if c := only(t, h); c.Annotations[wellknown.AnnBeingDeleted] != "yes" || c.DeletionTimestamp == nil {
		t.Errorf("marked and deleted: %v", c.Annotations)
	}
}

// TestMissingClassDisturbsNobody (S31, W21, B049): a program that looks for the class at every look writes an error into
// ready snapshots, and works on all of them for ever.
func TestMissingClassDisturbsNobody(t *testing.T) {
	h := kit.New(t)
	disk(h)
	both(h)
	for _, name := range everySnapshot {
		userTakes(name)(h)
	}
	h.Settle()
	kit.Remove[*snapv1.VolumeSnapshotClass](h.API, kube.Key{Name: kit.SnapshotClassName})
	h.Log.Clear()
	before := len(h.API.Requests())
	h.Settle()
	h.Restart()
	both(h)
	h.Settle()
	if got := effects(h); len(got) > 0 || len(h.API.Requests()) > before || len(h.Errors()) > 0 {
		t.Errorf("it costs %v, errors %v", got, h.Errors())
	}
	for _, name := range everySnapshot {
		wantReady(name)(t, h)
		userDeletes(name)(h)
	}
	h.Settle()
	wantNothing(t, h)
}

// TestFirstErrorIsToldWithoutAConflict (W24): a program that writes the error on the copy from before its own finalizers
// meets itself, and sends the event about an object without a name.
func TestFirstErrorIsToldWithoutAConflict(t *testing.T) {
	h := kit.New(t)
	disk(h)
	both(h)
	h.Lag(3)
	h.Horizon = 0
	h.Put(kit.Snapshot("snap", "none"))
	h.Settle()
	s := snap(t, h, "snap")
	if s.Status == nil || s.Status.Error == nil || len(s.Finalizers) != 2 {
		t.Fatalf("not told at once: %v %+v", s.Finalizers, s.Status)
	}
	for _, q := range h.API.Requests() {
		if q.Code == http.StatusConflict {
			t.Errorf("a conflict with ourselves: %s", q)
		}
	}
	if log := strings.Join(h.Log.Lines(), "\n"); strings.Count(log, "event default/snap: Warning SnapshotContentCreationFailed ") != 1 {
		t.Errorf("one event, about the snapshot: %s", log)
	}
}

// TestErrorsKeepTheirClass (W31): a program that flattens causes into text shows conflicts to users, and quotes what was
// quoted before.
func TestErrorsKeepTheirClass(t *testing.T) {
	h := kit.New(t)
	disk(h)
	c, _ := binder(h, Own)
	h.API.Conflict("volumesnapshots", 1)
	userTakes("snap")(h)
	if _, err := c.Reconcile(h.Ctx, keyOf(kit.Snapshot("snap", "data"))); !kube.IsConflict(err) {
		t.Errorf("a conflict became %T %v", err, err)
	}
	h.API.Fail("get", "persistentvolumes", apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumes"}, "pv-data", errors.New(`"no"`)), 1)
	if _, err := c.Reconcile(h.Ctx, keyOf(kit.Snapshot("snap", "data"))); !apierrors.IsForbidden(err) {
		t.Errorf("a refusal became %T %v", err, err)
	}
	h.Add(kit.Room{Name: "binder", Reconcile: c.Reconcile, Keys: kit.Feeds(kit.On(c.OnSnapshot), kit.On(c.OnContent))}, taker(h))
	h.Driver.Next("CreateSnapshot", kit.Reply{Code: codes.FailedPrecondition, Text: `quota "gold" reached`, Times: 100})
	h.Horizon = 5 * time.Second
	h.Settle()
	s := snap(t, h, "snap")
	if s.Status == nil || s.Status.Error == nil {
		t.Fatalf("%+v", s.Status)
	}
	const want = `"rpc error: code = FailedPrecondition desc = quota \"gold\" reached"`
	if got := *s.Status.Error.Message; !strings.HasSuffix(got, want) || strings.Contains(got, `\\`) {
		t.Errorf("quoted once: %s", got)
	}
}
