// SPDX-License-Identifier: Apache-2.0

// Package throttle owns how many calls the driver gets at once, and when a call whose answer never came is
// repeated. It stands as a decorator before the driver, and each operation has a gate of its own, so that
// deletions never wait for creations.
//
// Within a gate each flow, which is a class of the objects, has a limit of its own that adapts: it begins at
// a middling value, grows while it is what holds calls up and the answers come well within the deadline, and
// shrinks when calls end without an answer for a second time, when the driver turns them away, or when it
// must do again what a deadline cut off. Flows are served in turn. A class whose calls all hang thus narrows
// its own road only; no lanes of workers have to be reserved for the others. All flows of a gate together
// stay below the number of workers.
//
// A deadline ends the waiting and not the work: what the driver goes on doing still counts against the limit,
// else it would be given more and more. Such a call is repeated when the driver is likely to be done. The oldest
// is repeated first and, while nothing is known of the others, it alone: when it was done so may the next be, and
// when the driver is still at it ("Aborted") so it is with those that came later. The pause after such
// an answer is measured by how fast the driver gets things done, about three of them for each call in vain.
//
// It must not know Kubernetes, nor what a request asks for, and it repeats nothing itself: it tells by
// fault.RetryAfter when the repeat may come, and holds a repeat or a new call until its turn.
//
// In the walks it is what act calls; the deadline of a call begins in driver, when its turn has come.
package throttle

import (
	"context"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
)

// Caller makes the calls. Failures are *fault.Error.
type Caller interface {
	CreateVolume(ctx context.Context, request *csi.CreateVolumeRequest) (*csi.Volume, error)
	DeleteVolume(ctx context.Context, request *csi.DeleteVolumeRequest) error
	CreateSnapshot(ctx context.Context, request *csi.CreateSnapshotRequest) (*csi.Snapshot, error)
	DeleteSnapshot(ctx context.Context, request *csi.DeleteSnapshotRequest) error
	GetSnapshot(ctx context.Context, request *csi.GetSnapshotRequest) (*csi.Snapshot, error)
	ListSnapshots(ctx context.Context, request *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error)
	GetCapacity(ctx context.Context, request *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error)
}

// Options of a Driver.
type Options struct {
	// Most is how many calls of one operation there are at once, whatever the driver bears.
	Most int
	// Fixed, when it is not 0, is the limit of parallel calls of one operation; then nothing adapts.
	Fixed int
	// Deadline is how long a call may take.
	Deadline time.Duration
	Clock    clock.WithTicker
}

// Driver is a Caller that asks no more of the driver than it bears.
type Driver struct {
	caller Caller
	gates  map[fault.Operation]*gate
}

// operations are those that have a gate.
var operations = []fault.Operation{
	fault.CreateVolume, fault.DeleteVolume, fault.CreateSnapshot, fault.DeleteSnapshot,
	fault.GetSnapshot, fault.ListSnapshots, fault.GetCapacity,
}

// New puts gates before a Caller.
func New(caller Caller, options Options) *Driver {
	d := &Driver{caller: caller, gates: map[fault.Operation]*gate{}}
	for _, op := range operations {
		d.gates[op] = newGate(op, options)
	}
	return d
}

type flowKey struct{}

// WithFlow names the flow of the calls under a context: what should not suffer from one another has
// different names, such as classes.
func WithFlow(ctx context.Context, flow string) context.Context {
	return context.WithValue(ctx, flowKey{}, flow)
}

func flowOf(ctx context.Context) string {
	flow, _ := ctx.Value(flowKey{}).(string)
	return flow
}

type recheckKey struct{}

// question is asked when a call has waited for its turn for so long.
type question struct {
	after time.Duration
	ask   func(context.Context) error
}

// WithRecheck gives the call under a context a question that is asked when it had to wait for its turn: whether
// what permitted it still holds. An error is the end of the call, which is not made.
func WithRecheck(ctx context.Context, ask func(context.Context) error) context.Context {
	return context.WithValue(ctx, recheckKey{}, question{fresh, ask})
}

// WithGlance is WithRecheck for a question that costs nothing, and is asked whenever the turn has come.
func WithGlance(ctx context.Context, ask func(context.Context) error) context.Context {
	return context.WithValue(ctx, recheckKey{}, question{0, ask})
}

// fresh is how long what was read before a call counts as read right before it.
const fresh = time.Second

// recheck asks again what was found out before a long wait.
func recheck(ctx context.Context, c *call) error {
	q, ok := ctx.Value(recheckKey{}).(question)
	if !ok || c.began.Sub(c.since) < q.after {
		return nil
	}
	return q.ask(ctx)
}

// pass makes a call when its turn has come. The name is that of the object, empty for a call that only reads.
func pass[T any](ctx context.Context, g *gate, name string, send func() (T, error)) (T, error) {
	c, err := g.enter(ctx, name)
	if err != nil {
		var none T
		return none, err
	}
	left := false
	// A call that panics must not take its place with it.
	defer func() {
		if !left {
			g.leave(c, verdict{gone: true})
		}
	}()
	if err := recheck(ctx, c); err != nil {
		var none T
		return none, err
	}
	answer, err := send()
	left = true
	after := g.leave(c, verdict{pressure: fault.PressureOf(g.op, err), ok: err == nil, gone: ctx.Err() != nil || fault.IsUnreached(err)})
	if err != nil && after > 0 {
		err = fault.RetryAfter(err, after)
	}
	return answer, err
}
