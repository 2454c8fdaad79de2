// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/csi-tandem/csi-tandem/pkg/attempt"
	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/controller/volume"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/throttle"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// process is one life of the program.
type process struct {
	*life
	room        *claim.Controller
	busy, again map[string]bool
	// ill: it had no right to the record, and has not taken it over since.
	ill, begun bool
	// owes: what it has begun meanwhile is not on record yet.
	owes bool
	// yield ends it after its turn, because another one leads already.
	yield  func()
	isDead bool
}

// begin starts a process.
func (l *life) begin() {
	p := &process{life: l, busy: map[string]bool{}, again: map[string]bool{}}
	l.now = p
	h := l.h
	driver := &entrance{l, throttle.New(&caller{fickle: l.driver, out: map[string]bool{}}, throttle.Options{
		Most: 8, Fixed: 8, Deadline: callDeadline, Clock: &patient{FakeClock: h.Clock, life: l},
	})}
	p.room = claim.New(*claim.NewOptions(), claim.Deps{
		Client: h.API, Driver: driver, DriverName: kit.DriverName, Identity: "id-1", Capabilities: h.Driver.Capabilities,
		Recorder: h.Recorder, Clock: h.Clock, Topology: h.Topology,
		Claims: h.Stores.Claims, Volumes: h.Stores.Volumes, Classes: h.Stores.StorageClasses,
		RetryStart: h.RetryStart, RetryMax: h.RetryMax, Provisioned: p.excuse,
		Record: &claim.Recording{Namespace: recordKey.Namespace, Name: "driver-attempts", Holder: fmt.Sprint("process-", h.Log.Effects())},
	})
	remover := volume.New(volume.Deps{
		Client: h.API, Driver: driver, DriverName: kit.DriverName, Capabilities: h.Driver.Capabilities, Recorder: h.Recorder, Clock: h.Clock,
		Volumes: h.Stores.Volumes, Classes: h.Stores.StorageClasses, Claims: h.Stores.Claims, RetryStart: h.RetryStart, RetryMax: h.RetryMax,
		Settle: p.settleClaim,
	})
	p.add("record", p.tend, nil)
	p.add("claim", p.room.Reconcile, kit.Feeds(kit.On(p.room.KeysOfClaim), kit.On(p.room.KeysOfVolume), kit.On(p.room.KeysOfClass)))
	p.add("volume", remover.Reconcile, kit.On(remover.KeysOfVolume))
	p.takeRecord()
	p.begun = true
	h.Enqueue("record", reconcile.Key{})
}

// excuse notes what a process has bound that could not know better.
func (p *process) excuse(v *corev1.PersistentVolume) {
	if handle := v.Spec.CSI.VolumeHandle; p.yield != nil || p.ill && p.driver.isAway(handle) {
		p.excused[handle] = true
	}
}

// settleClaim is how rooms of volumes ask whether a claim is over; the queue of claims hears of those that are not.
func (p *process) settleClaim(ctx context.Context, v *corev1.PersistentVolume) (bool, error) {
	settled, err := p.room.Settle(ctx, v)
	if ref := v.Spec.ClaimRef; err == nil && !settled && ref != nil {
		p.h.Enqueue("claim", reconcile.Key{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID})
	}
	return settled, err
}

// add starts a room. As with the real queues, a key that is worked on waits when it is told of again.
func (p *process) add(name string, work reconcile.Func, keys func(kit.Change) []reconcile.Key) {
	p.h.Add(kit.Room{Name: name, Keys: keys, Reconcile: func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
		task := fmt.Sprint(name, " ", key)
		if p.isDead {
			return reconcile.Result{}, nil
		}
		if p.busy[task] {
			p.again[task] = true
			return reconcile.Result{}, nil
		}
		p.busy[task] = true
		result, err := work(ctx, key)
		delete(p.busy, task)
		if p.again[task] {
			delete(p.again, task)
			p.h.Enqueue(name, key)
		}
		if p.yield != nil && len(p.busy) == 0 {
			p.isDead = true
			p.yield()
		}
		return result, err
	}})
}

// tend does what the program does with its record from time to time.
func (p *process) tend(ctx context.Context, _ reconcile.Key) (reconcile.Result, error) {
	if p.ill && p.denied == nil {
		p.takeRecord()
	}
	err := p.room.Sweep(ctx)
	p.owes = p.owes && (p.ill || err != nil)
	if errors.Is(err, attempt.ErrForeign) && p.yield == nil {
		p.complain("overtaken by nobody: %v", err)
		return reconcile.Result{}, nil
	}
	return reconcile.Result{After: 30 * time.Second}, err
}

// tries is how often the record is tried to be read: no fault lasts for so long.
const tries = 100

// takeRecord takes the record over, and looks at what is on it.
func (p *process) takeRecord() {
	for range tries {
		p.ill = false
		keys, err := p.room.Begin(p.h.Ctx)
		if p.h.HasEnded() {
			return
		}
		if err != nil {
			continue
		}
		for _, key := range keys {
			p.h.Enqueue("claim", key)
		}
		return
	}
	p.t.Fatal("the record cannot be read")
}

// entrance lets happen what was to happen while a call waits for its turn: what it is for was decided, and is on record.
type entrance struct {
	*life
	claim.Driver
}

func (e *entrance) CreateVolume(ctx context.Context, request *csi.CreateVolumeRequest) (*csi.Volume, error) {
	e.spring("CreateVolume waits")
	return e.Driver.CreateVolume(ctx, request)
}

func (e *entrance) DeleteVolume(ctx context.Context, request *csi.DeleteVolumeRequest) error {
	e.spring("DeleteVolume waits")
	return e.Driver.DeleteVolume(ctx, request)
}

// patient is a clock whose waits pass at once: in a harness of one thread nothing else would end them.
type patient struct {
	*testingclock.FakeClock
	*life
	waits int
}

func (c *patient) NewTimer(d time.Duration) clock.Timer {
	if c.waits++; c.waits > 100_000 {
		c.t.Fatal("a call waits for its turn for ever")
	}
	timer := c.FakeClock.NewTimer(d)
	c.Step(d)
	return timer
}
