// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
)

const (
	asSource    = "snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection"
	boundTo     = "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection"
	contentHeld = "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"
	claimHeld   = "snapshot.storage.kubernetes.io/pvc-as-source-protection"
	beingMade   = "snapshot.storage.kubernetes.io/volumesnapshot-being-created"
)

// failed waits until the status of a snapshot says why it is not ready.
func (w *world) failed(name string, words ...string) {
	w.Helper()
	w.await(fmt.Sprintf("the status of snapshot %s has the error %q", name, words), func() (bool, string) {
		v, err := w.readSnapshot(name)
		if err != nil {
			return unreadable(err)
		}
		if v.Status == nil || v.Status.Error == nil {
			return false, fmt.Sprintf("it is %s; events %q", text(v.Status), w.messages(name))
		}
		return containsAll(ptr.Deref(v.Status.Error.Message, ""), words), ptr.Deref(v.Status.Error.Message, "")
	})
}

// disk is a claim with a volume.
func (w *world) disk(name string) string {
	w.Helper()
	w.claim(name, w.class("class-"+name))
	return w.bound(name).Spec.CSI.VolumeHandle
}

// TestSnapshotLife: a whole life, stopped where the driver is asked, with the finalizers and marks that hold everything
// in place meanwhile, and the whole content compared (spec parts 0 and 3.5.3; S1, S2, S55, S68).
func TestSnapshotLife(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{})
	w.claim("data", w.class("class", allowing("z1")))
	handle := w.bound("data").Spec.CSI.VolumeHandle
	class := w.snapshotClass("delete")
	rule := w.rule(w.script.Hang(w.ctx, control.On("CreateSnapshot"), 0))
	snap := w.snapshot("snap", "data", class)
	w.awaitCalls("CreateSnapshot", 1)

	// The mark was there before the call was sent: what is in the API now was there then.
	content, err := w.readContent("snapcontent-" + string(snap.UID))
	w.mustNot(err)
	if !slices.Contains(content.Finalizers, contentHeld) || content.Annotations[beingMade] != "yes" {
		t.Errorf("during the call the content has finalizers %q and annotations %v", content.Finalizers, content.Annotations)
	}
	claim, err := w.readClaim("data")
	w.mustNot(err)
	if !slices.Contains(claim.Finalizers, claimHeld) {
		t.Errorf("during the call the claim has finalizers %q", claim.Finalizers)
	}
	w.await("the snapshot says what it is bound to", func() (bool, string) {
		v, err := w.readSnapshot("snap")
		if err != nil {
			return unreadable(err)
		}
		bound := v.Status != nil && ptr.Deref(v.Status.BoundVolumeSnapshotContentName, "") == content.Name
		return bound && slices.Contains(v.Finalizers, asSource) && slices.Contains(v.Finalizers, boundTo), text(v)
	})
	w.release(rule)
	v, content := w.ready("snap")
	if v.Status.RestoreSize == nil || v.Status.RestoreSize.String() != "1Gi" || v.Status.CreationTime == nil || v.Status.Error != nil {
		t.Errorf("the status is %s", text(v.Status))
	}
	w.golden("content", content, map[string]string{string(snap.UID): "SNAPSHOT", handle: "VOLUMEHANDLE", *content.Status.SnapshotHandle: "HANDLE"})
	w.await("the claim is let go", func() (bool, string) {
		claim, err := w.readClaim("data")
		if err != nil {
			return unreadable(err)
		}
		return !slices.Contains(claim.Finalizers, claimHeld), text(claim.Finalizers)
	})
	w.told("snap", "Normal CreatingSnapshot")
	w.told("snap", "Normal SnapshotReady")

	rule = w.rule(w.script.Hang(w.ctx, control.On("DeleteSnapshot"), 0))
	w.deleteSnapshot("snap")
	w.awaitCalls("DeleteSnapshot", 1)
	if v, err = w.readSnapshot("snap"); err != nil || !slices.Contains(v.Finalizers, boundTo) {
		t.Errorf("during its deletion the snapshot has finalizers %q, error %v", v.Finalizers, err)
	}
	if content, err = w.readContent(content.Name); err != nil || !slices.Contains(content.Finalizers, contentHeld) || content.DeletionTimestamp == nil {
		t.Errorf("during its deletion the content has finalizers %q, error %v", content.Finalizers, err)
	}
	w.release(rule)
	w.snapshotGone("snap")
	w.contentGone(content.Name)
	if calls := w.calls("DeleteSnapshot"); len(calls) != 1 {
		t.Errorf("DeleteSnapshot was called %d times", len(calls))
	}
}

// TestDefaultClass (S9, S13): a snapshot without a class gets the default one of its driver, and with one it does not.
func TestDefaultClass(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{})
	w.disk("data")
	w.snapshot("early", "data", "")
	w.told("early", "Warning SetDefaultSnapshotClassFailed", "cannot find default snapshot class")
	class := w.snapshotClass("default", func(c *snapv1.VolumeSnapshotClass) {
		c.Annotations = map[string]string{"snapshot.storage.kubernetes.io/is-default-class": "true"}
	})
	named := w.snapshotClass("named")
	w.snapshot("late", "data", "")
	w.snapshot("own", "data", named)
	for name, want := range map[string]string{"early": class, "late": class, "own": named} {
		v, content := w.ready(name)
		if got := ptr.Deref(v.Spec.VolumeSnapshotClassName, ""); got != want || ptr.Deref(content.Spec.VolumeSnapshotClassName, "") != want {
			t.Errorf("snapshot %s has class %q, its content %v, want %s", name, got, content.Spec.VolumeSnapshotClassName, want)
		}
	}
}

// TestSnapshotErrors (S8, S14, S15, S20): what is wrong is told in the status, with words that users search for, and is
// taken back when it is right.
func TestSnapshotErrors(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{})
	w.disk("data")
	class := w.snapshotClass("delete")
	w.claim("pending", w.class("late", waiting))
	w.snapshot("noclass", "data", w.ns+"-missing")
	w.snapshot("noclaim", "missing", class)
	w.snapshot("unbound", "pending", class)
	w.told("noclass", "Warning GetSnapshotClassFailed")
	w.failed("noclaim", "cannot get claim from snapshot")
	w.failed("unbound", "the PVC pending is not yet bound to a PV, will not attempt to take a snapshot")
	if calls := w.calls("CreateSnapshot"); len(calls) > 0 {
		t.Errorf("the driver was asked all the same: %s", calls[0].Request)
	}
	// The snapshotters of all drivers here see it.
	if all := w.messages("noclass"); len(all) != 1 {
		t.Errorf("that its class is missing is told %d times: %q", len(all), all)
	}
	w.snapshotClass("missing")
	w.ready("noclass")
	w.pod("app", "pending", "")
	w.runs("app")
	v, _ := w.ready("unbound")
	if v.Status.Error != nil {
		t.Errorf("the error stays: %s", text(v.Status.Error))
	}
	// One that can never be made can be deleted.
	w.deleteSnapshot("noclaim")
	w.snapshotGone("noclaim")
}

// TestSnapshotDriverErrors (S56, S57, S64): an error of the driver is in the status of both objects, is told once, and is
// taken back. While the outcome is open the mark is there; when it is not, nothing holds a snapshot that is deleted (S81).
func TestSnapshotDriverErrors(t *testing.T) {
	t.Parallel()
	for code, isOpen := range map[codes.Code]bool{codes.InvalidArgument: false, codes.FailedPrecondition: false, codes.Unavailable: true, codes.Internal: true} {
		t.Run(code.String(), func(t *testing.T) {
			t.Parallel()
			w := begin(t, setup{snapshotter: []string{"--retry-interval-start=200ms"}})
			handle := w.disk("data")
			rule := w.rule(w.script.Fail(w.ctx, control.On("CreateSnapshot"), code))
			snap := w.snapshot("snap", "data", w.snapshotClass("delete"))
			w.failed("snap", "scripted "+code.String())
			name := "snapcontent-" + string(snap.UID)
			w.await("the content says so", func() (bool, string) {
				c, err := w.readContent(name)
				if err != nil {
					return unreadable(err)
				}
				said := c.Status != nil && c.Status.Error != nil && containsAll(ptr.Deref(c.Status.Error.Message, ""),
					[]string{"failed to take snapshot of the volume " + handle, "code = " + code.String(), "scripted"})
				return said && (!isOpen || c.Annotations[beingMade] == "yes"), text(c)
			})
			w.awaitCalls("CreateSnapshot", 3)
			// More than the two that the first and the later attempts may cost would be a flood.
			if said := w.messages(name); len(said) > 2 {
				t.Errorf("one error is told as %q", said)
			}
			if !isOpen {
				w.snapshot("hopeless", "data", w.ns+"-delete")
				w.failed("hopeless", "scripted "+code.String())
				w.deleteSnapshot("hopeless")
				w.snapshotGone("hopeless")
			}
			w.release(rule)
			v, content := w.ready("snap")
			if v.Status.Error != nil || content.Status.Error != nil {
				t.Errorf("the error stays: %s, %s", text(v.Status.Error), text(content.Status.Error))
			}
			if stored := w.inventory().Snapshots; len(stored) != 1 {
				t.Errorf("the driver stores %d snapshots", len(stored))
			}
		})
	}
}

// TestSlowSnapshot (S59): a snapshot that is cut and not ready has its handle, and is looked at until it is ready.
func TestSlowSnapshot(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{snapshotter: []string{"--retry-interval-start=200ms"}})
	w.disk("data")
	rule := w.rule(w.script.ReadyAfterCalls(w.ctx, "", 0))
	snap := w.snapshot("snap", "data", w.snapshotClass("delete"))
	w.await("the snapshot is cut and not ready", func() (bool, string) {
		v, err := w.readSnapshot("snap")
		if err != nil {
			return unreadable(err)
		}
		cut := v.Status != nil && v.Status.CreationTime != nil && v.Status.ReadyToUse != nil && !*v.Status.ReadyToUse
		return cut, text(v.Status)
	})
	content, err := w.readContent("snapcontent-" + string(snap.UID))
	w.mustNot(err)
	if content.Status == nil || content.Status.SnapshotHandle == nil {
		t.Fatalf("the content has the status %s", text(content.Status))
	}
	looks := func() int {
		return len(w.calls("CreateSnapshot")) + len(w.calls("GetSnapshot")) + len(w.calls("ListSnapshots"))
	}
	again := func() {
		before := looks()
		w.await("it is looked at again and again", func() (bool, string) { return looks() >= before+2, fmt.Sprint(looks()) })
	}
	// The first looks may come with what was still to be written.
	again()
	content, err = w.readContent(content.Name)
	w.mustNot(err)
	version := content.ResourceVersion
	again()
	if content, err = w.readContent(content.Name); err != nil || content.ResourceVersion != version {
		t.Errorf("looking costs writes: version %s became %s, error %v", version, content.ResourceVersion, err)
	}
	w.release(rule)
	w.ready("snap")
	w.told("snap", "Normal SnapshotCreated")
	w.told("snap", "Normal SnapshotReady")
}

// TestSnapshotDeletedWhileItIsCut (S79): a call whose outcome is open is waited for, and what it made is deleted.
func TestSnapshotDeletedWhileItIsCut(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{})
	w.disk("data")
	rule := w.rule(w.script.CommitThenHang(w.ctx, control.On("CreateSnapshot"), 0))
	snap := w.snapshot("snap", "data", w.snapshotClass("delete"))
	w.awaitCalls("CreateSnapshot", 1)
	w.deleteSnapshot("snap")
	name := "snapcontent-" + string(snap.UID)
	w.await("the content is asked to go", func() (bool, string) {
		c, err := w.readContent(name)
		if err != nil {
			return unreadable(err)
		}
		return c.DeletionTimestamp != nil, text(c.ObjectMeta)
	})
	if calls := w.calls("DeleteSnapshot"); len(calls) > 0 {
		t.Error("DeleteSnapshot was called while nobody could know the handle")
	}
	w.release(rule)
	w.snapshotGone("snap")
	w.contentGone(name)
	if calls := w.calls("DeleteSnapshot"); len(calls) == 0 {
		t.Error("DeleteSnapshot was not called")
	}
}

// TestClaimIsHeldWhileItIsCut: a claim that is deleted meanwhile stays until its snapshot is ready.
func TestClaimIsHeldWhileItIsCut(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{})
	w.disk("data")
	rule := w.rule(w.script.Hang(w.ctx, control.On("CreateSnapshot"), 0))
	w.snapshot("snap", "data", w.snapshotClass("delete"))
	w.awaitCalls("CreateSnapshot", 1)
	w.deleteClaim("data")
	w.release(rule)
	w.ready("snap")
	w.claimGone("data")
}
