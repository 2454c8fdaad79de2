// SPDX-License-Identifier: Apache-2.0

package fault

import "google.golang.org/grpc/codes"

// Classify is the table of gRPC code × operation.
//
// Internal and Unknown leave the outcome open for creates: a driver that had made the object and then
// failed answers with them, and believing in "no effect" leaks it. ResourceExhausted is an answer about
// room for volumes; for snapshots it may as well be an overloaded server, so it is uncertain there.
func Classify(op Operation, code codes.Code) Class {
	switch code {
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.Aborted, codes.Internal, codes.Unknown:
		return Uncertain
	case codes.ResourceExhausted:
		if op == CreateVolume {
			return Exhausted
		}
		return Uncertain
	case codes.InvalidArgument:
		return Infeasible
	case codes.NotFound, codes.AlreadyExists, codes.PermissionDenied, codes.FailedPrecondition,
		codes.OutOfRange, codes.Unimplemented, codes.DataLoss, codes.Unauthenticated:
		return Final
	default:
		// A code that gRPC does not have yet says nothing.
		return Uncertain
	}
}

// ProvesNothing tells the codes that are final for the call that got them, but do not prove that an
// earlier call with an open outcome made nothing: the driver may refuse before it looks. When a volume is
// made from a source, that the source is gone or not fit is often found out before the name is looked up.
// And a driver that finds a volume or a snapshot of the name, and takes it for another, may have made it by that call.
func ProvesNothing(err error) bool {
	e := Of(err)
	if e == nil {
		return true
	}
	switch e.Code {
	case codes.PermissionDenied, codes.Unauthenticated, codes.ResourceExhausted:
		return true
	case codes.NotFound, codes.FailedPrecondition:
		return e.Op == CreateVolume
	case codes.AlreadyExists:
		return e.Op == CreateVolume || e.Op == CreateSnapshot
	default:
		return e.Class == Uncertain
	}
}
