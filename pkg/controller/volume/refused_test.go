// SPDX-License-Identifier: Apache-2.0

package volume_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/attempt"
	"github.com/csi-tandem/csi-tandem/pkg/controller/volume"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestWhatStaysIsTold: a PersistentVolume that stays for want of a right says so in an event, and goes by itself when the right comes. What
// passes by itself is not told. Catches a volume that is Released for ever, and nobody knows why.
func TestWhatStaysIsTold(t *testing.T) {
	refused, trouble := error(&attempt.RefusedError{}), errors.New("etcd")
	for title, c := range map[string]struct {
		settle error
		verb   string
		told   string
	}{
		"its attempt cannot be taken off the record": {settle: refused, told: failed + "PersistentVolume v stays for now: "},
		"the record cannot be written now":           {settle: trouble},
		"it may not be deleted":                      {verb: "delete", told: failed + "deleting PersistentVolume v: "},
	} {
		t.Run(title, func(t *testing.T) {
			h := world(t, released())
			stays := c.settle
			room := volume.New(volume.Deps{
				Client: h.API, Driver: h.Driver, DriverName: kit.DriverName, Capabilities: h.Driver.Capabilities, Recorder: h.Recorder, Clock: h.Clock,
				Volumes: h.Stores.Volumes, Classes: h.Stores.StorageClasses, Claims: h.Stores.Claims, RetryStart: h.RetryStart, RetryMax: h.RetryMax,
				Settle: func(context.Context, *corev1.PersistentVolume) (bool, error) { return stays == nil, stays },
			})
			h.Add(kit.Room{Name: "volume", Reconcile: room.Reconcile, Keys: kit.On(room.KeysOfVolume)})
			release := func() {}
			if c.verb != "" {
				release = h.API.Deny(c.verb, "persistentvolumes")
			}
			h.Horizon = 10 * time.Minute
			h.Settle()
			told := 0
			for _, line := range h.Log.Lines() {
				if strings.HasPrefix(line, "event") {
					told++
				}
			}
			want := 0
			if c.told != "" {
				want = 1
			}
			if said := strings.Join(h.Log.Lines(), "\n"); told != want || !strings.Contains(said, c.told) {
				t.Errorf("told %d times\n%s", told, said)
			}
			stays = nil
			release()
			h.Settle()
			if _, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.KeyOf(released())); ok {
				t.Error("it stays although nothing is in the way", h.Trace())
			}
		})
	}
}
