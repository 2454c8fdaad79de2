// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"fmt"
	"slices"
	"testing"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// left is what the incumbents have left of one snapshot, field by field as they write it. Nil is what is not there.
type left struct {
	s *snapv1.VolumeSnapshot
	c *kube.Content
	// cut says that the driver has the snapshot.
	cut bool
}

const (
	sourceFinalizer, boundFinalizer = wellknown.FinalizerSnapshotSource, wellknown.FinalizerSnapshotBound
	created, deletedMark            = wellknown.AnnBeingCreated, wellknown.AnnBeingDeleted
)

var snapUID = string(kit.Snapshot("snap", "data").UID)

func theirs(finalizers ...string) *snapv1.VolumeSnapshot {
	return kit.Snapshot("snap", "data", func(s *snapv1.VolumeSnapshot) { s.Finalizers = finalizers })
}

func boundAs(ready bool, s *snapv1.VolumeSnapshot) *snapv1.VolumeSnapshot {
	s.Status = &snapv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: kit.Ptr("snapcontent-" + snapUID), ReadyToUse: kit.Ptr(ready)}
	if ready {
		s.Status.CreationTime = kit.Ptr(metav1.NewTime(kit.Start))
	}
	return s
}

func failing(message string, s *snapv1.VolumeSnapshot) *snapv1.VolumeSnapshot {
	s.Status = &snapv1.VolumeSnapshotStatus{ReadyToUse: kit.Ptr(false), Error: &snapv1.VolumeSnapshotError{Time: kit.Ptr(metav1.NewTime(kit.Start)), Message: &message}}
	return s
}

func dying(s *snapv1.VolumeSnapshot) *snapv1.VolumeSnapshot { kit.Deleted(s); return s }

// their content has a finalizer, unless it is new, and no annotation but the marks.
func their(mods ...func(*kube.Content)) *kube.Content {
	c := kit.Content(kit.Snapshot("snap", "data"), kit.VolumeHandle("pv-data"), func(c *kube.Content) {
		c.Finalizers = []string{wellknown.FinalizerContent}
		c.Spec.VolumeSnapshotClassName = kit.Ptr(kit.SnapshotClassName)
	})
	for _, mod := range mods {
		mod(c)
	}
	return c
}

func bare(c *kube.Content)   { c.Finalizers = nil }
func doomed(c *kube.Content) { kit.Deleted(c) }
func marked(keys ...string) func(*kube.Content) {
	return func(c *kube.Content) {
		for _, k := range keys {
			kube.SetAnnotation(c, k, "yes")
		}
	}
}

func handled(c *kube.Content) { kit.Taken(kit.SnapshotHandle("snapshot-" + snapUID))(c) }
func unready(c *kube.Content) { handled(c); c.Status.ReadyToUse = kit.Ptr(false) }
func cleared(c *kube.Content) { c.Status = &snapv1.VolumeSnapshotContentStatus{} }
func erring(message string) func(*kube.Content) {
	return func(c *kube.Content) {
		if c.Status == nil {
			c.Status = &snapv1.VolumeSnapshotContentStatus{}
		}
		c.Status.ReadyToUse = kit.Ptr(false)
		c.Status.Error = &snapv1.VolumeSnapshotError{Time: kit.Ptr(metav1.NewTime(kit.Start)), Message: &message}
	}
}

const (
	firstError = `Failed to create snapshot: failed to take snapshot of the volume handle-of-pv-data: "rpc error: code = Internal desc = x"`
	laterError = `Failed to check and update snapshot content: failed to take snapshot of the volume handle-of-pv-data: "rpc error: code = Internal desc = x"`
)

// TestTakeOver: whatever the incumbents have left half done is finished: what lives becomes ready, what was deleted goes, at
// the driver as well. creates and deletes are the calls that this takes.
func TestTakeOver(t *testing.T) {
	for _, c := range []struct {
		name             string
		left             left
		end              string
		creates, deletes int
	}{
		{"VS with as-source only", left{s: theirs(sourceFinalizer)}, "ready", 1, 0},
		{"VSC without finalizer", left{s: theirs(sourceFinalizer), c: their(bare)}, "ready", 1, 0},
		{"VSC with finalizer, VS without status", left{s: theirs(sourceFinalizer), c: their()}, "ready", 1, 0},
		{"VS bound, not ready", left{s: boundAs(false, theirs(sourceFinalizer)), c: their()}, "ready", 1, 0},
		{"marked, and nobody behind it", left{s: boundAs(false, theirs(sourceFinalizer, boundFinalizer)), c: their(marked(created)), cut: true}, "ready", 1, 0},
		{"handle, still marked", left{s: boundAs(false, theirs(sourceFinalizer)), c: their(handled, marked(created)), cut: true}, "ready", 0, 0},
		{"cut, not ready, still marked", left{s: boundAs(false, theirs(sourceFinalizer)), c: their(unready, marked(created)), cut: true}, "ready", 0, 0},
		{"ready, not copied", left{s: boundAs(false, theirs(sourceFinalizer)), c: their(handled), cut: true}, "ready", 0, 0},
		{"ready, and the bound finalizer never came", left{s: boundAs(true, theirs(sourceFinalizer)), c: their(handled), cut: true}, "ready", 0, 0},
		{"error of the first try", left{s: failing(firstError, boundAs(false, theirs(sourceFinalizer))), c: their(erring(firstError))}, "ready", 1, 0},
		{"error of a later try", left{s: failing(laterError, boundAs(false, theirs(sourceFinalizer))), c: their(unready, erring(laterError)), cut: true}, "ready", 0, 0},
		{"error of binding", left{s: failing("Failed to create snapshot content with error cannot get claim from snapshot", theirs(sourceFinalizer))}, "ready", 1, 0},
		{"conflict shown as an error", left{s: failing("snapshot controller failed to update snap on API server: the object has been modified",
			boundAs(false, theirs(sourceFinalizer, boundFinalizer))), c: their(handled), cut: true}, "ready", 0, 0},
		{"duplicated finalizers", left{s: boundAs(true, theirs(sourceFinalizer, boundFinalizer, sourceFinalizer)), c: their(handled), cut: true}, "ready", 0, 0},

		{"deleted before its content", left{s: dying(theirs(sourceFinalizer))}, "gone", 0, 0},
		{"deleted, content found by its name", left{s: dying(theirs(sourceFinalizer)), c: their(bare)}, "gone", 0, 0},
		{"deleted, duplicated finalizers", left{s: dying(boundAs(true, theirs(sourceFinalizer, boundFinalizer, boundFinalizer))), c: their(handled), cut: true}, "gone", 0, 1},
		{"marked for deletion", left{s: dying(boundAs(true, theirs(sourceFinalizer, boundFinalizer))), c: their(handled, marked(deletedMark)), cut: true}, "gone", 0, 1},
		{"content deleted", left{s: dying(boundAs(true, theirs(boundFinalizer))), c: their(handled, marked(deletedMark), doomed), cut: true}, "gone", 0, 1},
		{"deleted at the driver", left{s: dying(boundAs(true, theirs(boundFinalizer))), c: their(cleared, marked(deletedMark), doomed)}, "gone", 0, 0},
		{"content gone", left{s: dying(boundAs(true, theirs(boundFinalizer)))}, "gone", 0, 0},
		{"deleted while a create was open", left{s: dying(boundAs(false, theirs(boundFinalizer))), c: their(marked(created, deletedMark), doomed), cut: true}, "gone", 1, 1},
		{"W1 ready after the deletion, still marked", left{s: dying(boundAs(false, theirs(boundFinalizer))), c: their(handled, marked(created, deletedMark), doomed), cut: true}, "gone", 0, 1},
		{"W2 the mark was wiped and the snapshot has gone", left{c: their(handled, doomed), cut: true}, "gone", 0, 1},
		{"W2 wiped before there was a status", left{c: their(doomed)}, "gone", 0, 0},
		{"W7 torn out snapshot", left{c: their(handled, doomed, marked(created)), cut: true}, "gone", 0, 1},
	} {
		for _, lag := range []int{0, 3} {
			t.Run(fmt.Sprint(c.name, ", caches behind by ", lag), func(t *testing.T) {
				h := c.left.world(t)
				h.Lag(lag)
				both(h)
				h.Settle()
				if c.end == "ready" {
					wantReady("snap")(t, h)
					wantSettled(t, h)
				} else {
					wantNothing(t, h)
				}
				if made, erased := len(h.Driver.Calls("CreateSnapshot")), len(h.Driver.Calls("DeleteSnapshot")); made != c.creates || erased != c.deletes {
					t.Errorf("CreateSnapshot was sent %d times, DeleteSnapshot %d times", made, erased)
				}
			})
		}
	}
}

// world puts what was left into a world whose claim is protected, as it is in the middle of things.
func (l left) world(t *testing.T) *kit.Harness {
	t.Helper()
	h := kit.New(t)
	disk(h)
	kit.Edit(h.API, key("data"), func(c *corev1.PersistentVolumeClaim) {
		c.Finalizers = []string{wellknown.FinalizerSourceClaim}
		c.Annotations = map[string]string{wellknown.AnnStorageProvisioner: kit.DriverName}
	})
	if l.cut {
		h.Driver.PutSnapshot("snapshot-"+snapUID, kit.VolumeHandle("pv-data"), 1<<30)
	}
	if l.s != nil {
		h.Put(l.s)
	}
	if l.c != nil {
		h.Put(l.c)
	}
	return h
}

// wantSettled: both objects are as if we had made them, and cost nothing more.
func wantSettled(t *testing.T, h *kit.Harness) {
	t.Helper()
	s, c := snap(t, h, "snap"), only(t, h)
	if !slices.Contains(s.Finalizers, sourceFinalizer) || !slices.Contains(s.Finalizers, boundFinalizer) || !slices.Contains(c.Finalizers, wellknown.FinalizerContent) {
		t.Errorf("finalizers %v, %v", s.Finalizers, c.Finalizers)
	}
	if c.Annotations[created] != "" || c.Status.Error != nil || *s.Status.BoundVolumeSnapshotContentName != c.Name {
		t.Errorf("%v %+v", c.Annotations, c.Status)
	}
	h.Log.Clear()
	h.Restart()
	both(h)
	h.Settle()
	if got := effects(h); len(got) > 0 {
		t.Errorf("I6 settled, and it costs %v", got)
	}
}

// TestTakeOverOfWhatIsKept: retained contents, members of groups, labels of old versions.
func TestTakeOverOfWhatIsKept(t *testing.T) {
	retain := func(c *kube.Content) { c.Spec.DeletionPolicy = snapv1.VolumeSnapshotContentRetain }
	member := func(c *kube.Content) {
		kube.SetAnnotation(c, wellknown.AnnGroupSnapshotHandle, "g-1")
		c.Spec.VolumeSnapshotClassName = nil
	}
	labelled := boundAs(true, theirs(sourceFinalizer, boundFinalizer))
	labelled.Labels = map[string]string{"snapshot.storage.kubernetes.io/invalid-snapshot-resource": ""}
	for name, l := range map[string]left{
		"retained with a stale mark": {c: their(handled, retain, marked(deletedMark)), cut: true},
		"member, ready":              {c: their(handled, member), cut: true},
		"member, not taken yet":      {c: their(member)},
		"labels of old versions": {s: labelled, cut: true, c: their(handled, func(c *kube.Content) {
			c.Labels = map[string]string{"snapshot.storage.kubernetes.io/invalid-snapshot-content-resource": ""}
		})},
		"content of an old version": {s: boundAs(true, theirs(sourceFinalizer, boundFinalizer)), cut: true, c: their(handled, func(c *kube.Content) {
			c.Spec.SourceVolumeMode, c.Spec.VolumeSnapshotClassName = nil, nil
		})},
	} {
		t.Run(name, func(t *testing.T) {
			h := l.world(t)
			both(h)
			before := kit.Raw[*kube.Content](h.API, kube.KeyOf(only(t, h)))
			h.Settle()
			if after := kit.Raw[*kube.Content](h.API, kube.KeyOf(only(t, h))); before != after || len(h.Driver.Calls()) > 0 {
				t.Errorf("touched: %v\n%s\n%s", h.Driver.Calls(), before, after)
			}
			if l.s != nil && len(snap(t, h, "snap").Labels) != len(l.s.Labels) {
				t.Errorf("labels %v", snap(t, h, "snap").Labels)
			}
		})
	}
}

// TestTakeOverOfAMarkWithoutAClass (W3): a content that was marked before its class was found to be wrong, or whose class has
// gone. After two minutes the driver is asked with the name alone, whether the marked create made something or not. A program
// that waits for the class holds the snapshot, and its namespace, for ever.
func TestTakeOverOfAMarkWithoutAClass(t *testing.T) {
	for _, cut := range []bool{false, true} {
		for name, spoil := range map[string]func(h *kit.Harness){
			"gone": func(h *kit.Harness) {
				kit.Remove[*snapv1.VolumeSnapshotClass](h.API, kube.Key{Name: kit.SnapshotClassName})
			},
			"wrong": func(h *kit.Harness) {
				kit.Edit(h.API, kube.Key{Name: kit.SnapshotClassName}, func(c *snapv1.VolumeSnapshotClass) {
					c.Parameters = map[string]string{"csi.storage.k8s.io/unknown": "x"}
				})
			},
		} {
			t.Run(fmt.Sprint(name, ", cut ", cut), func(t *testing.T) {
				h := left{s: dying(boundAs(false, theirs(boundFinalizer))), c: their(marked(created, deletedMark), doomed), cut: cut}.world(t)
				spoil(h)
				both(h)
				h.Horizon = time.Minute
				h.Settle()
				if c := only(t, h); !kube.HasFinalizer(c, wellknown.FinalizerContent) || len(h.Driver.Calls()) > 0 {
					t.Fatal("I2 not waited for")
				}
				h.Horizon = time.Hour
				h.Settle()
				wantNothing(t, h)
			})
		}
	}
}
