// SPDX-License-Identifier: Apache-2.0

package fault

import "google.golang.org/grpc/codes"

// IsVague tells that the driver did answer, but in a way that says nothing about the outcome. Unlike a
// call that timed out, it is not running any more, so a few prompt repeats find out as much as can be
// found out.
func IsVague(err error) bool {
	e := Of(err)
	return e != nil && (e.Code == codes.Internal || e.Code == codes.Unknown || isLostOnTheWay(e))
}

// isLostOnTheWay tells that there was an answer, which gRPC did not let through. As the driver's own word the code would be
// final for a volume.
func isLostOnTheWay(e *Error) bool {
	return e.Op == CreateVolume && e.Code == codes.ResourceExhausted && e.Class == Uncertain
}

// IsEvasive tells that the driver's answer says nothing about the outcome of an earlier call, and that the
// driver is not at work any more: a vague answer, a refusal at the door, or the word that there is something else of the name, which may be
// what that call has made. Such answers may go on for ever.
func IsEvasive(err error) bool {
	e := Of(err)
	if e == nil {
		return false
	}
	switch e.Code {
	case codes.PermissionDenied, codes.Unauthenticated, codes.ResourceExhausted, codes.AlreadyExists:
		return true
	default:
		return IsVague(err)
	}
}

// MayRun tells that the driver may still be at work on the call, or is on one before it for the same object.
func MayRun(err error) bool {
	e := Of(err)
	switch {
	case e == nil || e.Class != Uncertain:
		return false
	case isCut(e.Text):
		return true
	default:
		return !IsEvasive(err)
	}
}
