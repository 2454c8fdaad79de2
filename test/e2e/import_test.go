// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// brings runs snapshotter import as an administrator, and gives what it says and its exit code.
func (w *world) brings(args ...string) (string, int) {
	w.Helper()
	cmd := exec.CommandContext(w.ctx, w.snapshotter.Path, append([]string{"import", "-n", w.ns, "--csi-address="}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.stage.Cluster.Kubeconfig())
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}

func (w *world) mustBring(args ...string) string {
	w.Helper()
	said, code := w.brings(args...)
	if code != 0 {
		w.Fatalf("import %s: exit %d, %s", args, code, said)
	}
	return said
}

// TestImport (SW-20, B059): a snapshot outlives its objects twice, and is restored by each of its owners; the last one takes it along. It would
// catch an import that deletes the data with the content whose place it takes, and one that the real API server or the running
// sidecar does not accept.
func TestImport(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{})
	w.disk("data")
	w.snapshot("first", "data", w.snapshotClass("keep", keeping))
	_, made := w.ready("first")
	handle := *made.Status.SnapshotHandle
	class := w.snapshotClass("delete")

	if said, code := w.brings("second", "--content="+made.Name); code != 1 || !strings.Contains(said, "there is nothing to import") {
		t.Errorf("of a content that is in use, exit %d: %s", code, said)
	}
	if said, code := w.brings("second", "--handle="+handle, "--class="+class); code != 1 || !strings.Contains(said, made.Name+" has the snapshot already") {
		t.Errorf("of a handle that is in use, exit %d: %s", code, said)
	}
	w.deleteSnapshot("first")
	w.snapshotGone("first")

	w.mustBring("second", "--content="+made.Name)
	w.ready("second")
	w.contentGone(made.Name)
	if said := w.mustBring("second", "--content="+made.Name); !strings.Contains(said, "nothing to do") {
		t.Errorf("a second time it says %s", said)
	}
	w.claim("from-second", w.ns+"-class-data", fromSnapshot("second"))
	w.bound("from-second")
	w.deleteSnapshot("second")
	w.snapshotGone("second")
	kept := w.contentOf(handle)
	w.mustBring("third", "--content="+kept, "--deletion-policy=Retain")
	w.ready("third")
	w.deleteSnapshot("third")
	w.snapshotGone("third")
	w.deleteContent(kept)
	w.contentGone(kept)
	if len(w.calls("DeleteSnapshot")) > 0 {
		t.Fatal("the snapshot was deleted although every owner so far was to keep it")
	}

	for _, dry := range []string{"--dry-run=false", "--dry-run"} {
		if said, code := w.brings("lost", "-n", w.ns+"-nowhere", "--handle="+handle, "--class="+class, dry); code != 1 || !strings.Contains(said, "namespace "+w.ns+"-nowhere does not exist") {
			t.Errorf("into no namespace, exit %d: %s", code, said)
		}
	}
	dry := w.mustBring("fourth", "--handle="+handle, "--class="+class, "--dry-run")
	if _, err := w.readSnapshot("fourth"); err == nil || !strings.Contains(dry, "snapshotHandle: "+handle) {
		t.Errorf("a dry run says %s", dry)
	}
	w.mustNot(w.stage.Cluster.ApplyBytes(w.ctx, []byte(dry), w.ns))
	if said := w.mustBring("fourth", "--handle="+handle, "--class="+class); !strings.Contains(said, "nothing to do") {
		t.Errorf("after the YAML of the dry run was applied it says %s", said)
	}
	_, content := w.ready("fourth")
	w.claim("from-fourth", w.ns+"-class-data", fromSnapshot("fourth"))
	w.bound("from-fourth")
	w.deleteSnapshot("fourth")
	w.snapshotGone("fourth")
	w.contentGone(content.Name)
	if len(w.inventory().Snapshots) > 0 {
		t.Errorf("the driver still has %v", w.inventory().Snapshots)
	}

	w.mustBring("wrong", "--handle=of-nobody", "--class="+class)
	asker{w, w.stage.Cluster.Kubeconfig()}.says(w.snapshotter, []string{"-n", w.ns, "wrong", "--csi-address="},
		"none named; its VolumeSnapshotContent has "+class, "what helps: if it is called otherwise", "then snapshotter import -n "+w.ns+" wrong --handle=HANDLE --class="+class)
	w.deleteSnapshot("wrong") // as the advice says
	w.snapshotGone("wrong")
}

// contentOf finds the one content that has a snapshot of the driver.
func (w *world) contentOf(handle string) string {
	w.Helper()
	list, err := w.snaps.VolumeSnapshotContents().List(w.ctx, metav1.ListOptions{})
	w.mustNot(err)
	for _, c := range list.Items {
		if has := c.Spec.Source.SnapshotHandle; c.Spec.Driver == w.driver && has != nil && *has == handle {
			if c.Spec.DeletionPolicy != snapv1.VolumeSnapshotContentRetain {
				w.Fatalf("content %s has policy %s, that of the one whose place it took was Retain", c.Name, c.Spec.DeletionPolicy)
			}
			return c.Name
		}
	}
	w.Fatalf("no content has snapshot %s", handle)
	return ""
}
