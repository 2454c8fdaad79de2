// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
)

const restoreFinalizer = "provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection"

// TestRestoreAndClone: what a copy begins with is what its source had, each at its time.
func TestRestoreAndClone(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{})
	class := w.class("class")
	w.claim("data", class)
	w.pod("app", "data", "")
	folder, _ := w.runs("app")
	w.mustNot(folder.Write("file", "before"))
	w.snapshot("snap", "data", w.snapshotClass("delete"))
	_, content := w.ready("snap")
	w.mustNot(folder.Write("file", "after"))

	// The snapshot is held while it is read, and let go afterwards (T35).
	rule := w.rule(w.script.Hang(w.ctx, control.On("CreateVolume"), 0))
	w.claim("restore", class, fromSnapshot("snap"))
	w.await("the snapshot is held", func() (bool, string) { return w.holds("snap") })
	w.release(rule)
	w.bound("restore")
	w.await("the snapshot is let go", func() (bool, string) {
		held, _ := w.holds("snap")
		return !held, "it is held"
	})
	w.claim("clone", class, fromClaim("data"))
	w.bound("clone")
	for name, want := range map[string]string{"restore": "before", "clone": "after"} {
		w.pod(name, name, "")
		copied, _ := w.runs(name)
		got, err := copied.Read("file")
		w.mustNot(err)
		if got != want {
			t.Errorf("the %s says %q, want %q", name, got, want)
		}
		// A copy is a volume of its own.
		w.mustNot(copied.Write("file", "changed in the copy"))
	}
	if got, err := folder.Read("file"); err != nil || got != "after" {
		t.Errorf("the source says %q, error %v", got, err)
	}
	type sourced struct {
		Source struct {
			Snapshot struct {
				ID string `json:"snapshot_id"`
			} `json:"snapshot"`
			Volume struct {
				ID string `json:"volume_id"`
			} `json:"volume"`
		} `json:"volume_content_source"`
	}
	var snapshots, volumes []string
	for _, c := range w.calls("CreateVolume") {
		r := request[sourced](w, c)
		snapshots, volumes = append(snapshots, r.Source.Snapshot.ID), append(volumes, r.Source.Volume.ID)
	}
	if !slices.Contains(snapshots, *content.Status.SnapshotHandle) || !slices.Contains(volumes, *content.Spec.Source.VolumeHandle) {
		t.Errorf("the driver was asked to copy the snapshots %q and the volumes %q", snapshots, volumes)
	}
}

func (w *world) holds(snapshot string) (bool, string) {
	v, err := w.readSnapshot(snapshot)
	if err != nil {
		return unreadable(err)
	}
	return slices.Contains(v.Finalizers, restoreFinalizer), text(v.Finalizers)
}

// TestRefusedSources: what cannot be restored or cloned is refused before the driver is asked, and the event says why.
// The texts are those that users search for (spec part 3.8).
func TestRefusedSources(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{})
	class := w.class("class")
	w.claim("data", class)
	w.bound("data")
	w.snapshot("snap", "data", w.snapshotClass("delete"))
	w.ready("snap")
	unready := w.rule(w.script.ReadyAfterCalls(w.ctx, "", 0))
	slow := w.snapshot("slow", "data", w.snapshotClass("slow"))
	w.await("the slow snapshot has a handle", func() (bool, string) {
		c, err := w.readContent("snapcontent-" + string(slow.UID))
		if err != nil {
			return unreadable(err)
		}
		return c.Status != nil && c.Status.SnapshotHandle != nil, text(c.Status)
	})
	calls := len(w.calls("CreateVolume"))
	rows := []struct {
		name string
		edit []func(*corev1.PersistentVolumeClaim)
		says []string
	}{
		{"nosnap", edits(fromSnapshot("missing")), []string{"error getting handle for DataSource Type VolumeSnapshot by Name missing", "error getting snapshot missing from api server"}},
		{"unready", edits(fromSnapshot("slow")), []string{"snapshot slow is not Ready"}},
		{"small", edits(fromSnapshot("snap"), sized("512Mi")), []string{"requested volume size 536870912 is less than the size 1073741824 for the source snapshot snap"}},
		{"mode", edits(fromSnapshot("snap"), asBlock), []string{"modifies the mode of the source volume but does not have permission to do so", "snapshot.storage.kubernetes.io/allow-volume-mode-change annotation is not present on snapshotcontent"}},
		{"noclaim", edits(fromClaim("missing")), []string{"error getting handle for DataSource Type PersistentVolumeClaim by Name missing", "error getting PVC missing"}},
		{"smallclone", edits(fromClaim("data"), sized("512Mi")), []string{"new PVC request must be greater than or equal in size to the specified PVC data source"}},
		{"modeclone", edits(fromClaim("data"), asBlock), []string{"the source PVC and destination PVCs must have the same volume mode for cloning"}},
		{"selector", edits(selecting), []string{"claim Selector is not supported"}},
	}
	for _, row := range rows {
		w.claim(row.name, class, row.edit...)
	}
	for _, row := range rows {
		w.told(row.name, append([]string{"ProvisioningFailed"}, row.says...)...)
	}
	if got := w.calls("CreateVolume"); len(got) != calls {
		t.Errorf("the driver was asked all the same: %s", got[len(got)-1].Request)
	}
	// A cause that goes away is noticed.
	w.release(unready)
	w.ready("slow")
	w.bound("unready")
}

func edits(all ...func(*corev1.PersistentVolumeClaim)) []func(*corev1.PersistentVolumeClaim) {
	return all
}

func asBlock(c *corev1.PersistentVolumeClaim) {
	c.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
}

func selecting(c *corev1.PersistentVolumeClaim) {
	c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
}

// TestSnapshotIsHeldByARestoreThatHangs: a snapshot that is deleted while a restore reads it stays until the restore is
// done, and is deleted then.
func TestSnapshotIsHeldByARestoreThatHangs(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{})
	class := w.class("class")
	w.claim("data", class)
	w.bound("data")
	w.snapshot("snap", "data", w.snapshotClass("delete"))
	w.ready("snap")
	rule := w.rule(w.script.Hang(w.ctx, control.On("CreateVolume"), 0))
	w.claim("restore", class, fromSnapshot("snap"))
	w.await("the restore is under way", func() (bool, string) { return len(w.calls("CreateVolume")) > 1, "" })
	w.deleteSnapshot("snap")
	w.told("snap", "SnapshotDeletePending", "Snapshot is being used to restore a PVC")
	if calls := w.calls("DeleteSnapshot"); len(calls) > 0 {
		t.Error("DeleteSnapshot was called while the snapshot is read")
	}
	w.release(rule)
	w.bound("restore")
	w.snapshotGone("snap")
}

// TestWrongAnswers: a driver that answers OK and means something else makes no volume that anybody uses, and none that is
// forgotten (T42, T53, B001).
func TestWrongAnswers(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{provisioner: []string{"--retry-interval-start=200ms"}})
	w.repeats = 20
	class := w.class("class")
	w.claim("data", class)
	w.bound("data")
	w.snapshot("snap", "data", w.snapshotClass("delete"))
	w.ready("snap")
	rows := []struct {
		name       string
		distortion string
		edit       []func(*corev1.PersistentVolumeClaim)
		says       string
	}{
		{"small", "TooSmall", nil, "less than requested capacity 1073741824"},
		{"empty", "NoContentSource", edits(fromSnapshot("snap")), "volume content source missing"},
		{"nothing", "NoVolume", nil, "ProvisioningFailed"},
		{"nameless", "NoVolumeID", nil, "ProvisioningFailed"},
	}
	for _, row := range rows {
		rule := w.rule(w.script.Distort(w.ctx, control.On("CreateVolume"), distortions[row.distortion]))
		claim := w.claim(row.name, class, row.edit...)
		w.told(row.name, "Warning ProvisioningFailed", row.says)
		got, err := w.readClaim(row.name)
		w.mustNot(err)
		if got.Spec.VolumeName != "" {
			t.Errorf("%s: claim is bound to %s", row.name, got.Spec.VolumeName)
		}
		w.release(rule)
		if pv := w.bound(row.name); pv.Name != "pvc-"+string(claim.UID) {
			t.Errorf("%s: bound to %s", row.name, pv.Name)
		}
	}
}

// TestSnapshotOfAnotherDriver: a content that another driver made cannot be restored by this one (T38).
func TestSnapshotOfAnotherDriver(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{})
	class := w.class("class")
	other := "other." + w.driver
	name := w.content("foreign", "handle", "foreign", keptOf(other))
	w.given("foreign", name)
	// Both halves of the binding are written by hand: nobody here works for that driver.
	foreign, err := w.readSnapshot("foreign")
	w.mustNot(err)
	patchContent(w, name, `{"spec":{"volumeSnapshotRef":{"namespace":"`+w.ns+`","name":"foreign","uid":"`+string(foreign.UID)+`"}}}`)
	patchContentStatus(w, name, `{"status":{"readyToUse":true,"snapshotHandle":"handle"}}`)
	patchSnapshotStatus(w, "foreign", `{"status":{"readyToUse":true,"boundVolumeSnapshotContentName":"`+name+`","restoreSize":"1Gi"}}`)
	w.claim("restore", class, fromSnapshot("foreign"))
	w.told("restore", "Warning ProvisioningFailed", "is not handled by CSI driver of StorageClass "+class)
}

func keptOf(driver string) func(*snapv1.VolumeSnapshotContent) {
	return func(c *snapv1.VolumeSnapshotContent) {
		c.Spec.Driver, c.Spec.DeletionPolicy = driver, snapv1.VolumeSnapshotContentRetain
	}
}
