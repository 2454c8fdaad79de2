// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// EndBefore ends the program before the nth effect from now is sent; the first is 1. It takes the place of what was arranged before.
func (h *Harness) EndBefore(nth int) { h.Log.cut(nth, beforeSent) }

// EndAfter ends the program once the nth effect from now has happened, before it sees the answer.
func (h *Harness) EndAfter(nth int) { h.Log.cut(nth, afterDone) }

// EndNever takes back what EndBefore and EndAfter have arranged.
func (h *Harness) EndNever() { h.Log.cut(0, never) }

// Effect is what a driver of a test's own does: it counts as an effect of the program that asks for it, so that the program can end
// before it or right after.
func (h *Harness) Effect(ctx context.Context, line string, work func() error) error {
	lost := status.Error(codes.DeadlineExceeded, "context deadline exceeded")
	return h.Log.effect(ctx, line, lost, func() (string, error) {
		err := work()
		return " → " + status.Code(err).String(), err
	})
}

// Overlap begins another life of the program, without rooms yet, while a turn of the one before is still under way: that one goes on with
// its own context and caches, as a process does that has not noticed yet that another leads. The result ends it.
func (h *Harness) Overlap() (end func()) {
	last, stores := h.process, h.Stores
	h.leave()
	h.begin()
	return func() { h.finish(last, stores) }
}
