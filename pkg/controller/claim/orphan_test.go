// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestGoneAndNotOver: the claim is gone, the volume is at the driver, and what stands in the way of its end does not pass by itself. It is told,
// with the claim as object as long as events live, and tried on. Catches a room that tells only claims which are there.
func TestGoneAndNotOver(t *testing.T) {
	for title, c := range map[string]struct {
		hinder func(*kit.Harness)
		want   string
	}{
		"its PersistentVolume may not be written": {func(h *kit.Harness) { h.API.Deny("create", "persistentvolumes") }, "saving PersistentVolume " + name + ": "},
		"it may not be removed": {func(h *kit.Harness) {
			h.API.Fail("create", "persistentvolumes", apierrors.NewBadRequest("no"), 0)
			h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.FailedPrecondition, Text: "in use", Times: 999})
		}, "volume is orphaned: rpc error: code = FailedPrecondition desc = in use"},
		"its secret may not be read": {func(h *kit.Harness) { h.API.Deny("get", "secrets") }, "error getting secret s in namespace storage"},
	} {
		t.Run(title, func(t *testing.T) {
			secret := kit.Secret("s", map[string]string{"key": "v"})
			secret.Namespace = "storage"
			h := world(t, kit.Claim("data"), secret, kit.Class(kit.ClassName, func(c *storagev1.StorageClass) {
				c.Parameters = map[string]string{wellknown.ParamSecretName: "s", wellknown.ParamSecretNamespace: "storage"}
			}))
			h.Driver.Next("CreateVolume", kit.Reply{Code: codes.Unavailable, Text: "x", Done: true, Meanwhile: func() {
				leaves(h)()
				c.hinder(h)
			}})
			startRecorded(h)
			h.Horizon = time.Hour
			h.Settle()
			told := 0
			for _, line := range h.Log.Lines() {
				if strings.HasPrefix(line, failed) && strings.Contains(line, c.want) {
					told++
				}
			}
			if told != 1 || len(h.Driver.Inventory()) != 1 || len(onRecord(h)) != 1 || len(kit.All[*corev1.PersistentVolume](h.API)) != 0 {
				t.Errorf("told %d times\n%s\n%s", told, strings.Join(h.Log.Lines(), "\n"), h.Trace())
			}
		})
	}
}

// TestAlreadyThereIsNoEnd: the answer to the first call is lost, and to the very same request the driver says that it has a volume of that name which
// is another: it compares what it made with what it was asked for, and does not know its own again. Catches a room that takes that for "nothing
// was made", and forgets the volume with the claim.
func TestAlreadyThereIsNoEnd(t *testing.T) {
	h := world(t, kit.Claim("data"))
	h.Driver.Next("CreateVolume", kit.Reply{Code: codes.DeadlineExceeded, Text: "late", Done: true}, kit.Reply{Code: codes.AlreadyExists, Text: "it differs", Times: 999})
	startRecorded(h)
	h.Horizon = 10 * time.Minute
	h.Settle()
	leaves(h)()
	h.Horizon = 2 * time.Hour
	h.Settle()
	said := strings.Join(h.Log.Lines(), "\n")
	if !strings.Contains(said, lost+name+" was made; look for it there: rpc error: code = AlreadyExists desc = it differs") || len(onRecord(h)) != 1 {
		t.Errorf("on record %v\n%s", onRecord(h), said)
	}
}
