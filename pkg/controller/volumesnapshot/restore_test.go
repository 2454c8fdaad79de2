// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"strings"
	"testing"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestRestoreWhoseClaimIsGone (S85): the claim was deleted while the driver still copies. What tells of the copy is the
// provisioner's finalizer, and the deletion at the driver waits for that.
func TestRestoreWhoseClaimIsGone(t *testing.T) {
	for _, byHand := range []bool{false, true} {
		restoreWhoseClaimIsGone(t, byHand)
	}
}

// restoreWhoseClaimIsGone also plays an impatient user, who deletes the content as well.
func restoreWhoseClaimIsGone(t *testing.T, byHand bool) {
	h := kit.New(t)
	disk(h)
	both(h)
	userTakes("snap")(h)
	h.Settle()
	kit.Edit(h.API, key("snap"), func(s *snapv1.VolumeSnapshot) { kube.AddFinalizer(s, wellknown.FinalizerSnapshotAsSource) })
	userDeletes("snap")(h)
	if byHand {
		kit.Remove[*kube.Content](h.API, kube.KeyOf(only(t, h)))
	}
	h.Horizon = 10 * time.Second
	h.Settle()
	if len(h.Driver.Calls("DeleteSnapshot")) > 0 || !byHand && only(t, h).DeletionTimestamp != nil {
		t.Fatalf("deleted under a restore\n%s", h.Trace())
	}
	if told := strings.Join(h.Recorder.Events(), "\n"); !strings.Contains(told, "Normal SnapshotDeletePending") {
		t.Errorf("events %s", told)
	}
	h.Horizon = 0 // its event, and no timer, goes on
	kit.Edit(h.API, key("snap"), func(s *snapv1.VolumeSnapshot) { kube.RemoveFinalizer(s, wellknown.FinalizerSnapshotAsSource) })
	h.Settle()
	wantNothing(t, h)
}

// TestClaimThatComesTooLate (S85): the provisioner refuses to restore from what is being deleted and is not protected by it, so the
// deletion does not wait for a claim that came later, and for an older one only as long as a call that nothing protects may
// take. Catches one that waits for ever: the claim waits as well, since it is refused.
func TestClaimThatComesTooLate(t *testing.T) {
	for after, waits := range map[time.Duration]bool{-time.Minute: true, 0: true, time.Minute: false} {
		h := kit.New(t)
		disk(h)
		both(h)
		userTakes("snap")(h)
		h.Settle()
		claim := kit.Claim("copy", kit.FromSnapshot("snap"), func(c *corev1.PersistentVolumeClaim) {
			c.CreationTimestamp = metav1.NewTime(h.Clock.Now().Add(after))
		})
		h.Stores.Hold()
		userDeletes("snap")(h)
		h.Put(claim)
		h.Stores.Sync()
		h.Horizon = 50 * time.Second
		h.Settle()
		if isDeleted := len(h.Driver.Calls("DeleteSnapshot")) > 0; isDeleted == waits {
			t.Errorf("claim made %v after the deletion: deleted within a minute: %t", after, isDeleted)
		}
		h.Horizon = 5 * time.Minute
		h.Settle()
		wantNothing(t, h)
	}
}
