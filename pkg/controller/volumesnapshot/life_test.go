// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// brief shortens effects to verb, object kind and driver call, which is what a budget counts.
func brief(h *kit.Harness) []string {
	var lines []string
	for _, line := range effects(h) {
		words := strings.Fields(line)
		lines = append(lines, words[0]+" "+words[1])
	}
	return lines
}

func reads(h *kit.Harness, from int) int {
	n := 0
	for _, q := range h.API.Requests()[from:] {
		if q.Verb == "get" {
			n++
		}
	}
	return n
}

func TestBudgetOfALife(t *testing.T) {
	h := kit.New(t)
	disk(h)
	both(h)
	h.Settle()
	before := len(h.API.Requests())
	userTakes("snap")(h)
	h.Settle()
	wantReady("snap")(t, h)
	want := []string{
		"patch volumesnapshots", "patch persistentvolumeclaims", "create volumesnapshotcontents", "driver CreateSnapshot",
		"patch volumesnapshotcontents/status", "patch volumesnapshotcontents", "patch volumesnapshots/status", "patch persistentvolumeclaims",
	}
	if diff := cmp.Diff(want, brief(h)); diff != "" {
		t.Errorf("S1 9.7 create to ready: seven writes in this order (-want +got):\n%s", diff)
	}
	if n := reads(h, before); n != 1 {
		t.Errorf("9.7 create to ready: %d reads, want the volume alone", n)
	}
	wantEvents(t, h, "Normal SnapshotReady Snapshot default/snap is ready to use.")

	h.Log.Clear()
	before = len(h.API.Requests())
	userDeletes("snap")(h)
	h.Settle()
	wantNothing(t, h)
	want = []string{"delete volumesnapshotcontents", "driver DeleteSnapshot", "patch volumesnapshotcontents", "patch volumesnapshots"}
	if diff := cmp.Diff(want, brief(h)); diff != "" {
		t.Errorf("S68 9.7 delete: three writes (-want +got):\n%s", diff)
	}
	if n := reads(h, before); n != 1 {
		t.Errorf("9.7 delete: %d reads, want the content alone", n)
	}
}

func TestSettledCostsNothing(t *testing.T) {
	h := kit.New(t)
	disk(h)
	both(h)
	userTakes("snap")(h)
	h.Settle()
	h.Log.Clear()
	before := len(h.API.Requests())
	h.Restart()
	both(h)
	h.Settle()
	if got := effects(h); len(got) > 0 || len(h.API.Requests()) > before {
		t.Errorf("S32 S102 I6 a settled snapshot costs %v", got)
	}
}

func TestRetainCostsOneMarkMore(t *testing.T) {
	h := kit.New(t)
	disk(h)
	h.Put(kit.SnapshotClass(kit.SnapshotClassName, func(c *snapv1.VolumeSnapshotClass) { c.DeletionPolicy = snapv1.VolumeSnapshotContentRetain }))
	both(h)
	userTakes("snap")(h)
	h.Settle()
	if f := snap(t, h, "snap").Finalizers; len(f) != 1 || f[0] != wellknown.FinalizerSnapshotSource {
		t.Errorf("S3 finalizers %v", f)
	}
	h.Log.Clear()
	userDeletes("snap")(h)
	h.Settle()
	if diff := cmp.Diff([]string{"patch volumesnapshotcontents", "patch volumesnapshots"}, brief(h)); diff != "" {
		t.Errorf("S69 (-want +got):\n%s", diff)
	}
	contents := kit.All[*kube.Content](h.API)
	if len(contents) != 1 || contents[0].Annotations[wellknown.AnnBeingDeleted] != "yes" {
		t.Fatalf("S69 the content stays, marked: %+v", contents)
	}
	h.Log.Clear()
	kit.Remove[*kube.Content](h.API, kube.KeyOf(contents[0]))
	h.Settle()
	if len(kit.All[*kube.Content](h.API)) > 0 || len(h.Driver.Calls("DeleteSnapshot")) > 0 || len(h.Driver.Inventory()) != 2 {
		t.Errorf("S69 deleted later: the content goes, the data stays: %v", h.State())
	}
}

func TestSlowDriverCostsOneWriteMore(t *testing.T) {
	h := kit.New(t)
	disk(h)
	h.Driver.ReadyAfter = 4
	both(h)
	userTakes("snap")(h)
	h.Settle()
	wantReady("snap")(t, h)
	writes := map[string]int{}
	for _, line := range brief(h) {
		writes[line]++
	}
	if writes["patch volumesnapshotcontents/status"] != 2 || writes["patch volumesnapshots/status"] != 2 {
		t.Errorf("S59 cut and ready are a write each, polls none: %v", writes)
	}
	wantEvents(t, h, "Normal SnapshotCreated Snapshot default/snap was successfully created by the CSI driver.",
		"Normal SnapshotReady Snapshot default/snap is ready to use.")
}

func TestImportedSnapshot(t *testing.T) {
	h := kit.New(t)
	disk(h)
	h.Put(kit.NamedContent("old"))
	h.Driver.PutSnapshot("old", kit.VolumeHandle("pv-data"), 1<<30)
	both(h)
	h.Settle()
	if c := kit.All[*kube.Content](h.API)[0]; c.Status == nil || !*c.Status.ReadyToUse || len(c.Finalizers) > 0 {
		t.Errorf("S43 verified before it is bound, without finalizer: %+v", c)
	}
	h.Put(kit.Snapshot("thief", "", kit.FromContent("old")))
	h.Settle()
	if s := snap(t, h, "thief"); s.Status == nil || s.Status.Error == nil || !strings.Contains(*s.Status.Error.Message, "bound to a different snapshot") {
		t.Errorf("S44 B007 %+v", s.Status)
	}
	h.Put(kit.Snapshot("data-snapshot", "", kit.FromContent("old")))
	h.Settle()
	wantReady("data-snapshot")(t, h)
	userDeletes("thief")(h)
	h.Settle()
	wantReady("data-snapshot")(t, h)
	if len(h.Driver.Calls("CreateSnapshot", "DeleteSnapshot")) > 0 {
		t.Error("S41 S44 an import touches nothing at the driver")
	}
}

func TestImportBeforeItsContent(t *testing.T) {
	h := kit.New(t)
	disk(h)
	h.Driver.PutSnapshot("old", kit.VolumeHandle("pv-data"), 1<<30)
	_, room := binder(h, All)
	h.Add(room, taker(h))
	h.Horizon = 2 * time.Second
	h.Put(kit.Snapshot("data-snapshot", "", kit.FromContent("old")))
	h.Settle()
	wantEvents(t, h, "Warning SnapshotContentMissing VolumeSnapshotContent is missing; create VolumeSnapshotContent old, whose spec.volumeSnapshotRef is default/data-snapshot")
	h.Put(kit.NamedContent("old"))
	h.Settle()
	wantReady("data-snapshot")(t, h)
}

func TestContentOfALivingSnapshot(t *testing.T) {
	h := kit.New(t)
	disk(h)
	both(h)
	userTakes("snap")(h)
	h.Settle()
	kit.Remove[*kube.Content](h.API, kube.KeyOf(kit.All[*kube.Content](h.API)[0]))
	h.Settle()
	if len(h.Driver.Calls("DeleteSnapshot")) > 0 || len(kit.All[*kube.Content](h.API)) != 1 {
		t.Error("S76 the data of a living snapshot was touched")
	}
	wantReady("snap")(t, h)
	userDeletes("snap")(h)
	h.Settle()
	wantNothing(t, h)
}

func TestLostContentIsNotMadeAnew(t *testing.T) {
	h := kit.New(t)
	disk(h)
	both(h)
	userTakes("snap")(h)
	h.Settle()
	h.Log.Clear()
	kit.Edit(h.API, kube.KeyOf(kit.All[*kube.Content](h.API)[0]), func(c *kube.Content) {
		c.Finalizers = nil
		kit.Deleted(c)
	})
	h.Horizon = time.Minute
	h.Settle()
	if len(kit.All[*kube.Content](h.API)) > 0 || len(h.Driver.Calls("CreateSnapshot")) != 1 {
		t.Error("S33 W4 a content was made anew")
	}
	if s := snap(t, h, "snap"); isReady(s) || s.Status.Error == nil {
		t.Errorf("S33 %+v", s.Status)
	}
	if got := brief(h); len(got) != 1 {
		t.Errorf("S33 lost once, told once: %v", got)
	}
}

func TestClassOfAnotherDriver(t *testing.T) {
	h := kit.New(t)
	disk(h)
	kit.Edit(h.API, kube.Key{Name: "pv-data"}, func(v *corev1.PersistentVolume) { v.Spec.CSI.Driver = "other.example" })
	both(h)
	h.Horizon = time.Minute
	userTakes("snap")(h)
	h.Settle()
	if s := snap(t, h, "snap"); s.Status == nil || s.Status.Error == nil || len(h.Driver.Calls()) > 0 {
		t.Errorf("S20 W8 refused in status, driver never called: %+v", s.Status)
	}
	userDeletes("snap")(h)
	h.Settle()
	wantNothing(t, h)
}
