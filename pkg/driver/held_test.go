// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/driver"
	"github.com/csi-tandem/csi-tandem/pkg/throttle"
)

// The driver restarts, and says for a while that it is not ready. A deletion waits meanwhile; somebody keeps the volume. Catches a deletion that goes
// out on a decision that is older than what counts as fresh.
func TestHeldDeletionIsDecidedAnew(t *testing.T) {
	s := serve(t)
	conn, err := driver.Connect(t.Context(), driver.Options{Address: s.socket, Timeout: 15 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Identify(t.Context()); err != nil {
		t.Fatal(err)
	}
	calls := throttle.New(conn, throttle.Options{Most: 10, Deadline: 15 * time.Second, Clock: clock.RealClock{}})
	s.stop()
	s.change(func() { s.notReady = 3 })
	s.start(t)
	for conn.Losses() == 0 {
		if err := conn.WaitConnected(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err := conn.WaitConnected(t.Context()); err != nil {
		t.Fatal(err)
	}
	var kept atomic.Bool
	done := make(chan error, 1)
	go func() {
		ctx := throttle.WithRecheck(t.Context(), func(context.Context) error {
			if kept.Load() {
				return errors.New("it is to stay by now")
			}
			return nil
		})
		done <- calls.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: "v"})
	}()
	time.Sleep(1500 * time.Millisecond) // longer than what was decided holds
	kept.Store(true)                    // persistentVolumeReclaimPolicy is Retain from here on
	if _, err := conn.Identify(t.Context()); err != nil {
		t.Fatal(err)
	}
	err = <-done
	if _, sent := s.request().(*csi.DeleteVolumeRequest); sent {
		t.Error("deleted seconds after somebody kept it:", err)
	}
}
