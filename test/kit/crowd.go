// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/throttle"
)

// Crowded is a driver behind gates that let one deletion through at a time, and each has to wait for another one, for longer than what
// was read before it counts as fresh.
type Crowded struct {
	*throttle.Driver
	clock *slow
	// entered hears of each deletion of nothing at the driver, which stays there until it is told to leave.
	entered, leave chan struct{}
	before         func()
}

// Crowd makes the world's driver a crowded one. What is done before each deletion asks for its turn is done while it waits, as far as
// the room can tell.
func Crowd(h *Harness, before func()) *Crowded {
	d := &Crowded{clock: &slow{WithTicker: h.Clock}, entered: make(chan struct{}), leave: make(chan struct{}), before: before}
	d.Driver = throttle.New(inside{h.Driver, d.entered, d.leave}, throttle.Options{Most: 1, Deadline: time.Hour, Clock: d.clock})
	return d
}

// DeleteSnapshot has the same meaning as in driver.Conn.
func (d *Crowded) DeleteSnapshot(ctx context.Context, request *csi.DeleteSnapshotRequest) error {
	d.occupy(func() { _ = d.Driver.DeleteSnapshot(context.WithoutCancel(ctx), &csi.DeleteSnapshotRequest{}) })
	return d.Driver.DeleteSnapshot(ctx, request)
}

// DeleteVolume has the same meaning as in driver.Conn.
func (d *Crowded) DeleteVolume(ctx context.Context, request *csi.DeleteVolumeRequest) error {
	d.occupy(func() { _ = d.Driver.DeleteVolume(context.WithoutCancel(ctx), &csi.DeleteVolumeRequest{}) })
	return d.Driver.DeleteVolume(ctx, request)
}

// occupy lets another deletion in, which leaves when the next one has asked for its turn.
func (d *Crowded) occupy(other func()) {
	d.before()
	go other()
	<-d.entered
	leaves := func() { go func() { d.leave <- struct{}{} }() }
	d.clock.next.Store(&leaves)
}

// inside is the driver behind the gates.
type inside struct {
	*Driver
	entered, leave chan struct{}
}

func (d inside) DeleteSnapshot(ctx context.Context, request *csi.DeleteSnapshotRequest) error {
	if request.GetSnapshotId() != "" {
		return d.Driver.DeleteSnapshot(ctx, request)
	}
	return d.stay()
}

func (d inside) DeleteVolume(ctx context.Context, request *csi.DeleteVolumeRequest) error {
	if request.GetVolumeId() != "" {
		return d.Driver.DeleteVolume(ctx, request)
	}
	return d.stay()
}

func (d inside) stay() error {
	d.entered <- struct{}{}
	<-d.leave
	return nil
}

// slow is a clock that goes on by two seconds whenever it is looked at.
type slow struct {
	clock.WithTicker
	looks atomic.Int64
	// next is done at the next look.
	next atomic.Pointer[func()]
}

// Now has the same meaning as in clock.PassiveClock.
func (c *slow) Now() time.Time {
	if next := c.next.Swap(nil); next != nil {
		(*next)()
	}
	return c.WithTicker.Now().Add(time.Duration(c.looks.Add(1)) * 2 * time.Second)
}
