// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestPressureOfEveryCode(t *testing.T) {
	for code := codes.OK; code <= codes.Unauthenticated; code++ {
		volume, snapshot := Answered, Answered
		switch code {
		case codes.DeadlineExceeded:
			volume, snapshot = Late, Late
		case codes.Aborted:
			volume, snapshot = Busy, Busy
		case codes.Unavailable:
			volume, snapshot = Overloaded, Overloaded
		case codes.ResourceExhausted:
			// A full pool is no reason to call less often.
			snapshot = Overloaded
		}
		for op, want := range map[Operation]Pressure{CreateVolume: volume, CreateSnapshot: snapshot, DeleteVolume: snapshot} {
			var err error
			if failure := New(op, status.Error(code, "x")); failure != nil {
				err = failure
			}
			if got := PressureOf(op, err); got != want {
				t.Errorf("B045 %s, %v: %v, want %v", op, code, got, want)
			}
			if got := PressureOf(op, RetryAfter(err, 1)); err != nil && got != want {
				t.Errorf("%s, %v, wrapped: %v, want %v", op, code, got, want)
			}
		}
	}
	if PressureOf(CreateVolume, errors.New("no answer of a driver")) != Answered {
		t.Error("what never reached the driver says nothing about it")
	}
}
