// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
	"github.com/csi-tandem/csi-tandem/test/stage"
)

// TestRecordOffBetween (PW-14): a provisioner ends in the middle of a call, one without a record leads after it and makes the volume, and the claim
// and its PersistentVolume go, with the data kept as the class says. Then the first one leads again, with the entry from before on its record. It
// leaves the data alone, says so, and works. Catches one that takes the record for its own still, asks for the volume by its name, gets what was
// kept, and removes it.
func TestRecordOffBetween(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{withoutSnapshotter: true, withoutTopology: true, provisioner: electing})
	class := w.class("keep", retained)
	rule := w.rule(w.script.CommitThenHang(w.ctx, control.On("CreateVolume").Times(1), 0))
	w.claim("data", class)
	w.awaitCalls("CreateVolume", 1)
	if code := w.provisioner.Terminate().ExitCode(); code != 0 {
		t.Error("ended with", code)
	}
	w.release(rule)
	off, err := w.cast.StartSidecar(stage.Provisioner, slices.Concat(electing, []string{"--attempt-record=false"})...)
	w.mustNot(err)
	kept := w.bound("data")
	w.deleteClaim("data")
	w.claimGone("data")
	w.mustNot(w.kube.CoreV1().PersistentVolumes().Delete(w.ctx, kept.Name, metav1.DeleteOptions{}))
	w.volumeGone(kept.Name)
	off.Terminate()
	w.mustNot(w.provisioner.Start())
	w.await("it says what it leaves alone", func() (bool, string) {
		said, err := os.ReadFile(w.provisioner.Log)
		return strings.Contains(string(said), "others may have led since it was written"), text(err)
	})
	// What is worked on comes after that.
	w.static("again", w.driver, kept.Spec.CSI.VolumeHandle, "again")
	w.claim("again", "", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = w.ns + "-again" })
	w.bound("again")
	w.claim("next", w.class("class"))
	w.bound("next")
	entries, err := w.recorded()
	w.mustNot(err)
	stays := slices.ContainsFunc(slices.Collect(maps.Keys(entries)), func(key string) bool { return strings.HasSuffix(key, ".between") })
	if !stays || len(w.calls("DeleteVolume")) != 0 || len(w.inventory().Volumes) != 2 {
		t.Error(entries, w.calls("DeleteVolume"), text(w.inventory()))
	}
}
