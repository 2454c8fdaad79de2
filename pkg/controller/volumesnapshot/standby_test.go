// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"fmt"
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestStandbyKeepsNothingOfWhatComesAndGoes: who stands by hears of everything, for weeks. Catches a room that
// notes what was torn out before it works, which grows by each snapshot that ever was.
func TestStandbyKeepsNothingOfWhatComesAndGoes(t *testing.T) {
	h := kit.New(t)
	c, _ := standby(h, Own)
	for i := range 100 {
		s := kit.Snapshot(fmt.Sprint("backup-", i), "data")
		content := kit.Content(s, kit.VolumeHandle("pv-data"))
		c.queue.Hear(c.OnSnapshot(kube.Change[*snapv1.VolumeSnapshot]{New: s}))
		c.queue.Hear(c.OnContent(kube.Change[*kube.Content]{New: content}))
		c.queue.Hear(c.OnSnapshot(kube.Change[*snapv1.VolumeSnapshot]{Old: s, Deleted: true}))
		c.queue.Hear(c.OnContent(kube.Change[*kube.Content]{Old: content, Deleted: true}))
	}
	if len(c.torn) > 0 || len(c.gone) > 0 {
		t.Errorf("of 100 snapshots that are all gone %d are torn, %d contents gone", len(c.torn), len(c.gone))
	}
}

// TestWorkBeginsWithAllThereIs: what was heard while somebody else worked is looked at when the lead comes. Catches a room that has
// forgotten a snapshot, the content of one that is gone, or a claim that is protected for nobody.
func TestWorkBeginsWithAllThereIs(t *testing.T) {
	h := kit.New(t)
	disk(h)
	kit.Edit(h.API, key("data"), func(c *corev1.PersistentVolumeClaim) { c.Finalizers = []string{wellknown.FinalizerSourceClaim} })
	c, _ := standby(h, Own)
	there := kit.Snapshot("there", "", kit.FromContent("hand-made"))
	h.Put(there, kit.Content(kit.Snapshot("gone", "data"), kit.VolumeHandle("pv-data")))
	h.Settle()
	if keys := c.all(); len(keys) != 3 {
		t.Errorf("%v, want the snapshot, the content of one that is gone, and the claim", keys)
	}
}
