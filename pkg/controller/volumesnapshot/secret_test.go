// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestNoAnnotationChoosesASecret: of the snapshot's life, from the first call to the last, each secret is the class's. Catches
// a room that takes over annotations from a VolumeSnapshot, which users write, to its content, where they name secrets.
func TestNoAnnotationChoosesASecret(t *testing.T) {
	for _, c := range []struct {
		name       string
		parameters map[string]string
		want       []string
	}{
		{"a class without secrets", nil, nil},
		{"the class's own", map[string]string{
			wellknown.ParamSnapshotterSecretName: "ours", wellknown.ParamSnapshotterSecretNamespace: "storage",
			wellknown.ParamSnapshotterListSecretName: "lists", wellknown.ParamSnapshotterListSecretNamespace: "storage",
		}, []string{"get secrets storage/lists", "get secrets storage/ours"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Driver.ReadyAfter = 1
			disk(h)
			h.Put(kit.SnapshotClass(kit.SnapshotClassName, func(class *snapv1.VolumeSnapshotClass) { class.Parameters = c.parameters }))
			for _, name := range []string{"ours", "lists", "theirs"} {
				for _, namespace := range []string{"storage", "theirs", kit.Namespace} {
					secret := kit.Secret(name, nil)
					secret.Namespace = namespace
					h.Put(secret)
				}
			}
			wishful := kit.Snapshot("snap", "data")
			for _, key := range kit.ProtocolKeys(t, "../../wellknown") {
				kube.SetAnnotation(wishful, key, "theirs")
			}
			h.Put(wishful)
			both(h)
			h.Settle()
			for _, content := range kit.All[*kube.Content](h.API) {
				for key, value := range content.Annotations {
					if value == "theirs" {
						t.Errorf("annotation %s of the snapshot is on the content", key)
					}
				}
			}
			wantReady("snap")(t, h)
			userDeletes("snap")(h)
			h.Settle()
			wantNothing(t, h)
			var read []string
			for _, r := range h.API.Requests() {
				if r.Resource == "secrets" {
					read = append(read, r.String())
				}
			}
			slices.Sort(read)
			if d := cmp.Diff(c.want, slices.Compact(read)); d != "" {
				t.Errorf("secrets read (-want +got):\n%s\n%s", d, h.Trace())
			}
		})
	}
}
