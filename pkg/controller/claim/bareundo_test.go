// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestUnstorableAfterABareCall: claim, namespace and secret go while the first call is open, the call without the secret finds the volume, and
// the API refuses its PersistentVolume. Catches a room for which the one try without the secret was that call: the removal would never be asked
// for.
func TestUnstorableAfterABareCall(t *testing.T) {
	for title, restarts := range map[string]bool{"one process": false, "the next process": true} {
		t.Run(title, func(t *testing.T) {
			h := goesWithItsSecret(t)
			h.API.Fail("create", "persistentvolumes", apierrors.NewBadRequest("no"), 0)
			startRecorded(h)
			if restarts {
				h.Horizon = 0
				h.Settle()
				h.Restart()
				startRecorded(h)
			}
			h.Horizon = 5 * time.Hour
			h.Settle()
			if left := h.Driver.Inventory(); len(left) != 0 || len(onRecord(h)) != 0 || len(requests(h)) != 2 || len(h.Driver.Calls("DeleteVolume")) != 1 {
				t.Errorf("left %v, record %v\n%s", left, onRecord(h), h.Trace())
			}
		})
	}
}

// goesWithItsSecret is a world whose first call is answered late, when the claim and its secret are gone.
func goesWithItsSecret(t *testing.T) *kit.Harness {
	h := world(t, kit.Claim("data"), kit.Secret("s", map[string]string{"key": "v"}), kit.Class(kit.ClassName, func(c *storagev1.StorageClass) {
		c.Parameters = map[string]string{wellknown.ParamSecretName: "s", wellknown.ParamSecretNamespace: kit.Namespace}
	}))
	h.Driver.Next("CreateVolume", kit.Reply{Code: codes.Unavailable, Text: "x", Done: true, Meanwhile: func() {
		leaves(h)()
		kit.Remove[*corev1.Secret](h.API, kube.Key{Namespace: kit.Namespace, Name: "s"})
	}})
	return h
}

// TestWrongVolumeOfABareCall: the same, and the volume that the call without the secret finds is wrong, and may not be removed without it.
// Catches a room that counts that as no try, and asks for the volume and its removal in turn for ever, without telling that it stays.
func TestWrongVolumeOfABareCall(t *testing.T) {
	h := goesWithItsSecret(t)
	h.Driver.Next("CreateVolume", kit.Reply{Volume: small, Times: 99})
	h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.InvalidArgument, Text: "no secret", Times: 999})
	startRecorded(h)
	h.Horizon = 5 * time.Hour
	h.Settle()
	if len(requests(h)) != 2 || len(h.Driver.Calls("DeleteVolume")) != 5 || len(onRecord(h)) != 1 {
		t.Errorf("%d requests, record %v\n%s", len(requests(h)), onRecord(h), h.Trace())
	}
}

// TestRefusedForLackOfTheSecret: the same, and somebody makes the secret again, while what the volume was to be made from is gone by then. Catches a
// room that takes the refusal of the removal without the secret for one of the removal, and asks for the volume instead, which is refused for ever.
func TestRefusedForLackOfTheSecret(t *testing.T) {
	h := goesWithItsSecret(t)
	h.Driver.Next("CreateVolume", kit.Reply{Volume: small}, kit.Reply{Code: codes.NotFound, Text: "no such source", Times: 999})
	h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.InvalidArgument, Text: "no secret", Times: 5})
	startRecorded(h)
	h.Horizon = 10 * time.Minute
	h.Settle()
	h.Put(kit.Secret("s", map[string]string{"key": "v"}))
	h.Horizon = 5 * time.Hour
	h.Settle()
	if left := h.Driver.Inventory(); len(left) != 0 || len(requests(h)) != 2 || len(onRecord(h)) != 0 {
		t.Errorf("left %v, %d requests, record %v\n%s", left, len(requests(h)), onRecord(h), h.Trace())
	}
}

// TestStrayVolumeAfterABareCall: the same on a node, whose volume turns out to be in the way of another node's. Catches the same.
func TestStrayVolumeAfterABareCall(t *testing.T) {
	n := onNodes(t, map[string]int64{"n1": 10 * gib}, kit.Claim("data", kit.OnNode("n1")), kit.Secret("s", map[string]string{"key": "v"}),
		kit.Class(kit.ClassName, kit.WaitForConsumer, func(c *storagev1.StorageClass) {
			c.Parameters = map[string]string{wellknown.ParamSecretName: "s", wellknown.ParamSecretNamespace: kit.Namespace}
		}))
	n.drivers["n1"].Next("CreateVolume", kit.Reply{Code: codes.Unavailable, Text: "x", Done: true, Meanwhile: func() {
		n.Stores.Hold() // a node does not see the volumes of others
		n.Put(madeOnN2("of-n2", "host", "n2"))
		kit.Remove[*corev1.PersistentVolumeClaim](n.API, dataKey)
		kit.Remove[*corev1.Secret](n.API, kube.Key{Namespace: kit.Namespace, Name: "s"})
		n.Stores.Claims.Drop(kit.Claim("data", func(c *corev1.PersistentVolumeClaim) { c.UID = dataUID.UID }))
	}})
	n.Horizon = 5 * time.Hour
	n.Settle()
	if left := n.drivers["n1"].Inventory(); len(left) != 0 {
		t.Errorf("left at n1: %v\n%s", left, n.Trace())
	}
}
