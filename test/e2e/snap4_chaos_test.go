// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/test/stage"
)

// TestSnapshotChaos (B009, B017, S82, S95): snapshots of several claims are made and deleted in random order, whatever state they are
// in, while both programs are killed again and again. In the end nothing is left, in the API and at the driver, and no claim
// is held. CSI_TANDEM_FULL=1 makes it 200 snapshots of 20 claims, CSI_TANDEM_SEED repeats an order.
func TestSnapshotChaos(t *testing.T) {
	t.Parallel()
	claims, snapshots := 4, 40
	if os.Getenv("CSI_TANDEM_FULL") == "1" {
		claims, snapshots = 20, 200
	}
	seed := uint64(time.Now().UnixNano())
	if given, err := parseSeed(os.Getenv("CSI_TANDEM_SEED")); err == nil {
		seed = given
	}
	t.Logf("seed %d", seed)
	order := rand.New(rand.NewPCG(seed, 0))
	w := begin(t, setup{})
	w.repeats = 1000 // each kill may cost one more
	class, snapshotClass := w.class("class"), w.snapshotClass("delete")
	for i := range claims {
		w.claim(fmt.Sprint("data", i), class)
	}
	for i := range claims {
		w.bound(fmt.Sprint("data", i))
	}
	chaos := stage.StartChaos(w.ctx, seed, w.provisioner, w.snapshotter)
	made, left := 0, []string{}
	for made < snapshots || len(left) > 0 {
		if made < snapshots && (len(left) == 0 || order.IntN(2) == 0) {
			name := fmt.Sprint("snap", made)
			w.snapshot(name, fmt.Sprint("data", order.IntN(claims)), snapshotClass)
			left, made = append(left, name), made+1
		} else {
			i := order.IntN(len(left))
			err := w.snaps.VolumeSnapshots(w.ns).Delete(w.ctx, left[i], metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
			left = append(left[:i], left[i+1:]...)
		}
		time.Sleep(time.Duration(order.IntN(200)) * time.Millisecond)
	}
	kills, err := chaos.Stop()
	w.mustNot(err)
	t.Logf("killed %v", kills)
	w.await("no snapshot is left, in the API and at the driver, and no claim is held", func() (bool, string) {
		listed, err := w.snaps.VolumeSnapshots(w.ns).List(w.ctx, metav1.ListOptions{})
		if err != nil {
			return unreadable(err)
		}
		inventory, err := w.script.Inventory(w.ctx)
		if err != nil {
			return unreadable(err)
		}
		held := 0
		for i := range claims {
			claim, err := w.readClaim(fmt.Sprint("data", i))
			if err != nil {
				return unreadable(err)
			}
			for _, f := range claim.Finalizers {
				if f == claimHeld {
					held++
				}
			}
		}
		return len(listed.Items) == 0 && len(inventory.Snapshots) == 0 && held == 0,
			fmt.Sprintf("%d snapshots, %d at the driver, %d claims are held", len(listed.Items), len(inventory.Snapshots), held)
	})
}
