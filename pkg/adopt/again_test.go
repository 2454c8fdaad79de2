// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"strings"
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"

	"github.com/csi-tandem/csi-tandem/pkg/binding"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestImportAgainUnderTheSameName: an imported snapshot was kept when its VolumeSnapshot went, and the same command brings it back.
// Catches an import that takes the content for done since it names a snapshot of that name: the binder refuses what has the UID of
// another one.
func TestImportAgainUnderTheSameName(t *testing.T) {
	h := world(t, kit.SnapshotClass(kit.SnapshotClassName))
	o := byHandle
	o.Policy = "Retain"
	mustDo(t, h, o)
	kit.Edit(h.API, kube.Key{Name: imported}, func(c *kube.Content) {
		c.Spec.VolumeSnapshotRef.UID = "first"
		kube.SetAnnotation(c, wellknown.AnnBeingDeleted, "yes")
	})
	kit.Remove[*snapv1.VolumeSnapshot](h.API, o.key())
	said := mustDo(t, h, o)
	c := contentNamed(t, h, imported)
	s, _ := kit.Read[*snapv1.VolumeSnapshot](h.API, o.key())
	if v := binding.Judge(s, &c.VolumeSnapshotContent); v.State == binding.Refused || c.Annotations[wellknown.AnnBeingDeleted] != "" {
		t.Errorf("said %q, and it cannot be bound: %s, annotations %v", said, v.Message, c.Annotations)
	}
	if again := mustDo(t, h, o); !strings.Contains(again, "nothing to do") {
		t.Errorf("done a second time: %q", again)
	}
	// Whoever is bound to it keeps it.
	kit.Edit(h.API, kube.Key{Name: imported}, func(c *kube.Content) { c.Spec.VolumeSnapshotRef.UID = s.UID })
	if again := mustDo(t, h, o); !strings.Contains(again, "nothing to do") || contentNamed(t, h, imported).Spec.VolumeSnapshotRef.UID != s.UID {
		t.Errorf("what is bound was freed: %q", again)
	}
}
