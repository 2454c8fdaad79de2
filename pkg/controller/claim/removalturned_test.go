// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestRemovalStaysFirstWithoutItsSecret: as foundRemoval, and the claim goes with its secret; the driver does not remove the volume "first" without it, and
// makes the other one. Catches a removal that is put behind the request when its turn without the secret was in vain: with the PersistentVolume of the
// request it is forgotten, on record too, and "first" stays at the driver.
func TestRemovalStaysFirstWithoutItsSecret(t *testing.T) {
	for title, comesBack := range map[string]bool{"the secret stays away": false, "the secret comes back at last": true} {
		t.Run(title, func(t *testing.T) {
			secret := kit.Secret("s", map[string]string{"key": "v"})
			h := world(t, kit.Claim("data"), secret.DeepCopy(), kit.Class(kit.ClassName, func(c *storagev1.StorageClass) {
				c.Parameters = map[string]string{wellknown.ParamSecretName: "s", wellknown.ParamSecretNamespace: kit.Namespace}
			}))
			h.Driver.Next("CreateVolume", kit.Reply{Volume: func(v *csi.Volume) *csi.Volume { v = small(v); v.VolumeId = "first"; return v }})
			h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.Unavailable, Text: "x", Times: 5})
			h.Horizon = 100 * time.Millisecond
			startRecorded(h)
			h.Settle()
			h.Restart()
			grant := h.API.Deny("", "configmaps")
			h.Driver.Next("CreateVolume", kit.Reply{Code: codes.Unavailable, Text: "x", Done: true})
			c := startRecorded(h)
			h.Settle()
			leaves(h)()
			kit.Remove[*corev1.Secret](h.API, kube.Key{Namespace: kit.Namespace, Name: "s"})
			grant()
			keys, err := c.Begin(h.Ctx)
			if err != nil || len(keys) == 0 {
				t.Fatal(err, keys)
			}
			for _, key := range keys {
				h.Enqueue("claim", key)
			}
			h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.InvalidArgument, Text: "no secret", Times: 5})
			h.Horizon = 5 * time.Hour
			h.Settle()
			if comesBack {
				h.Put(secret.DeepCopy())
				if err := c.Sweep(h.Ctx); err != nil {
					t.Fatal(err)
				}
				h.Restart()
				startRecorded(h)
				h.Settle()
			} else if err := c.Sweep(h.Ctx); err != nil {
				t.Fatal(err)
			}
			if len(removed(h, "first")) == 0 && len(onRecord(h)) == 0 {
				t.Errorf("volume %q was never removed, and is on record no more; PersistentVolumes %d\n%v\n%s", "first", len(kit.All[*corev1.PersistentVolume](h.API)), methods(h), h.Trace())
			}
		})
	}
}
