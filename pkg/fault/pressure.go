// SPDX-License-Identifier: Apache-2.0

package fault

import "google.golang.org/grpc/codes"

// Pressure is what the end of a call says about how much the driver bears.
type Pressure int

const (
	// Answered: the driver has done with the call, well or not. How many calls it has at once is not why.
	Answered Pressure = iota
	// Late: the deadline ended the call; the driver may still be at work on it.
	Late
	// Busy: the driver is at work on the same object (CSI spec, "Error Scheme": a call is pending for the volume).
	Busy
	// Overloaded: the driver cannot take the call now.
	Overloaded
)

// PressureOf reads the end of a call of op. ResourceExhausted is about room when a volume is made, and about
// the driver's own strength elsewhere.
func PressureOf(op Operation, err error) Pressure {
	e := Of(err)
	if e == nil {
		return Answered
	}
	switch e.Code {
	case codes.DeadlineExceeded:
		return Late
	case codes.Aborted:
		return Busy
	case codes.Unavailable:
		return Overloaded
	case codes.ResourceExhausted:
		if op != CreateVolume {
			return Overloaded
		}
	}
	return Answered
}
