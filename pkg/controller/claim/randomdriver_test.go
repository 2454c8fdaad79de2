// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/throttle"
)

// callDeadline is how long a call of the fickle driver may take.
const callDeadline = 10 * time.Second

// fickle is a driver that knows its volumes by their names, and answers as it was told to. What it tells is true, as far as it goes: it never
// says of what it has made, or is at work on, that it was not made.
type fickle struct {
	*life
	byName map[string]*stored
	// names are those of all ids that it ever gave.
	names map[string]string
	count int
	// small is how many of the next volumes are too small.
	small   int
	replies map[fault.Operation][]*reply
	// working is what it goes on with although nobody waits any more, by operation and object.
	working map[string]*unfinished
}

type stored struct {
	id, tier, zone string
	isSmall        bool
}

type moment int

const (
	// before it has an effect, or after that, a call fails.
	before moment = iota
	after
	// later the deadline ends the call, and the effect comes when nobody waits for it.
	later
)

// reply is how some calls end.
type reply struct {
	code  codes.Code
	when  moment
	takes time.Duration
	times int
}

type unfinished struct {
	due  time.Time
	work func() error
}

func newFickle(l *life) *fickle {
	return &fickle{life: l, byName: map[string]*stored{}, names: map[string]string{}, replies: map[fault.Operation][]*reply{}, working: map[string]*unfinished{}}
}

func (d *fickle) take(op fault.Operation) *reply {
	queue := d.replies[op]
	if len(queue) == 0 {
		return nil
	}
	if queue[0].times--; queue[0].times == 0 {
		d.replies[op] = queue[1:]
	}
	return queue[0]
}

// catchUp does what is due by now of the work that nobody waits for.
func (d *fickle) catchUp() {
	for _, key := range slices.Sorted(maps.Keys(d.working)) {
		if work := d.working[key]; !work.due.After(d.h.Clock.Now()) {
			delete(d.working, key)
			d.say("late: %s: %v", key, work.work())
		}
	}
}

// isAway tells that a volume is being removed although nobody waits for that.
func (d *fickle) isAway(id string) bool { return d.working[string(fault.DeleteVolume)+" "+id] != nil }

// mayRefuse tells that an answer is no lie: some codes say that nothing of the name is there.
func (d *fickle) mayRefuse(op fault.Operation, subject string, code codes.Code) bool {
	if op != fault.CreateVolume || code != codes.InvalidArgument && code != codes.OutOfRange {
		return true
	}
	return d.byName[subject] == nil && d.working[string(op)+" "+subject] == nil
}

func (d *fickle) serve(op fault.Operation, subject string, work func() error) error {
	d.spring(string(op) + " comes")
	d.catchUp()
	key, r := string(op)+" "+subject, d.take(op)
	if r != nil && r.code == codes.DeadlineExceeded {
		d.h.Clock.Step(callDeadline)
	}
	switch {
	case r != nil && r.when == before && d.mayRefuse(op, subject, r.code):
		return status.Error(r.code, "before")
	case d.working[key] != nil:
		return status.Error(codes.Aborted, "at work on it")
	case r != nil && r.when == later:
		d.working[key] = &unfinished{due: d.h.Clock.Now().Add(r.takes), work: work}
		return status.Error(codes.DeadlineExceeded, "later")
	}
	err := work()
	d.spring(string(op) + " is done")
	if err == nil && r != nil && r.when == after {
		return status.Error(r.code, "after")
	}
	return err
}

func (d *fickle) make(request *csi.CreateVolumeRequest) (*csi.Volume, error) {
	name, tier, zone := request.GetName(), request.GetParameters()["tier"], ""
	if places := request.GetAccessibilityRequirements().GetPreferred(); len(places) > 0 {
		zone = places[0].GetSegments()["zone"]
	}
	v := d.byName[name]
	if v == nil {
		d.count++
		v = &stored{id: "id-" + name, tier: tier, zone: zone, isSmall: d.small > 0}
		if d.numbers {
			v.id = fmt.Sprint("id-", d.count)
		}
		d.small = max(d.small-1, 0)
		d.byName[name], d.names[v.id] = v, name
	}
	if v.tier != tier || d.strict && v.zone != zone {
		return nil, status.Errorf(codes.AlreadyExists, "%s is of tier %s in zone %q", v.id, v.tier, v.zone)
	}
	answer := &csi.Volume{VolumeId: v.id, CapacityBytes: request.GetCapacityRange().GetRequiredBytes()}
	if v.isSmall {
		answer.CapacityBytes = 1
	}
	if v.zone != "" {
		answer.AccessibleTopology = []*csi.Topology{{Segments: map[string]string{"zone": v.zone}}}
	}
	return answer, nil
}

func (d *fickle) remove(id string) error {
	if name := d.names[id]; d.byName[name] != nil && d.byName[name].id == id {
		delete(d.byName, name)
	}
	return nil
}

// caller is the driver as one process calls it.
type caller struct {
	throttle.Caller
	*fickle
	// out are the volumes that a call is out for.
	out map[string]bool
}

func (c *caller) call(ctx context.Context, op fault.Operation, volume, subject string, work func() error) error {
	err := c.h.Effect(ctx, "driver "+string(op)+" "+subject, func() error {
		if c.out[volume] {
			c.complain("two calls are out for volume %s", volume)
		}
		c.out[volume] = true
		defer delete(c.out, volume)
		err := c.serve(op, subject, work)
		c.say("%s %s: %v", op, subject, err)
		return err
	})
	if state := status.FromContextError(err); err != nil && state.Code() != codes.Unknown {
		err = state.Err()
	}
	if failure := fault.New(op, err); failure != nil {
		return failure
	}
	return nil
}

func (c *caller) CreateVolume(ctx context.Context, request *csi.CreateVolumeRequest) (*csi.Volume, error) {
	var answer *csi.Volume
	err := c.call(ctx, fault.CreateVolume, request.GetName(), request.GetName(), func() (err error) {
		answer, err = c.make(request)
		return err
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

func (c *caller) DeleteVolume(ctx context.Context, request *csi.DeleteVolumeRequest) error {
	id := request.GetVolumeId()
	return c.call(ctx, fault.DeleteVolume, c.names[id], id, func() error { return c.remove(id) })
}
