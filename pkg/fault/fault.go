// SPDX-License-Identifier: Apache-2.0

// Package fault owns the meaning of failed driver calls: one table from gRPC code and operation to a
// class, and the error value that carries both.
//
// It must not know Kubernetes, nor what is done about an error; it is the only package that reads gRPC
// codes.
//
// In the walks it stands between driver, which wraps every failure here, and the machines, which ask
// only for the class: may the call still be running, is waiting for another place worth it, is the
// request hopeless as it stands.
package fault

import (
	"errors"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Operation is what was asked of the driver.
type Operation string

// The operations whose failures are told apart.
const (
	CreateVolume   Operation = "CreateVolume"
	DeleteVolume   Operation = "DeleteVolume"
	CreateSnapshot Operation = "CreateSnapshot"
	DeleteSnapshot Operation = "DeleteSnapshot"
	GetSnapshot    Operation = "GetSnapshot"
	ListSnapshots  Operation = "ListSnapshots"
	GetCapacity    Operation = "GetCapacity"
	Identify       Operation = "Identify"
)

// Class is what a failure says about the state of the driver.
type Class int

const (
	// Uncertain: the call may have taken effect, or may still be running. Only a repeat of the very same
	// request can settle it.
	Uncertain Class = iota
	// Final: the driver says that the call had no effect and is not running.
	Final
	// Exhausted: Final, and the reason is room; another place may have it (CSI spec, CreateVolume errors).
	Exhausted
	// Infeasible: Final, and the request cannot succeed until somebody changes it.
	Infeasible
)

// String names the class for messages and metrics.
func (c Class) String() string {
	return [...]string{"uncertain", "final", "exhausted", "infeasible"}[c]
}

// Error is a failed driver call.
type Error struct {
	Op    Operation
	Code  codes.Code
	Class Class
	// Text is the driver's message, cut to MaxText bytes.
	Text string
	// inside keeps the cause for errors.Is, such as a cancelled context.
	inside error
}

// MaxText bounds how much of a driver's message is shown to users: an event takes no more than 1 KiB.
const MaxText = 1000

// New wraps the error that a driver call returned. It returns nil for nil.
func New(op Operation, err error) *Error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	state, ok := status.FromError(err)
	if !ok {
		// Nothing arrived that the driver could have meant as an answer.
		return &Error{Op: op, Code: codes.Unknown, Class: Uncertain, Text: cut(err.Error()), inside: err}
	}
	class := Classify(op, state.Code())
	if isOfTransport(state) {
		class = Uncertain
	}
	return &Error{Op: op, Code: state.Code(), Class: class, Text: cut(state.Message()), inside: err}
}

// Malformed is the error of an answer that breaks the CSI spec, such as OK without a volume. Whether the
// call took effect is not known.
func Malformed(op Operation, text string) *Error {
	return &Error{Op: op, Code: codes.Internal, Class: Uncertain, Text: cut(text)}
}

// Error reads as gRPC errors do, which is what users of such sidecars search for.
func (e *Error) Error() string {
	return "rpc error: code = " + e.Code.String() + " desc = " + e.Text
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.inside }

// Of returns the driver failure inside err, or nil.
func Of(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// IsNotFound tells that the driver does not know the object. For a deletion that is as good as done.
func IsNotFound(err error) bool {
	e := Of(err)
	return e != nil && e.Code == codes.NotFound
}

// IsExisting tells that the driver has an object of that name already, and takes it for another than is asked for.
func IsExisting(err error) bool {
	e := Of(err)
	return e != nil && e.Code == codes.AlreadyExists
}

// IsOfRequest tells that the driver has refused the words or the numbers of a request.
func IsOfRequest(err error) bool {
	e := Of(err)
	return e != nil && (e.Code == codes.InvalidArgument || e.Code == codes.OutOfRange)
}

// IsBusy tells that the driver already works on the same object (Aborted) or is not there yet
// (Unavailable): the next try may come soon.
func IsBusy(err error) bool {
	e := Of(err)
	return e != nil && (e.Code == codes.Aborted || e.Code == codes.Unavailable)
}

// IsUnimplemented tells that the driver does not have the call.
func IsUnimplemented(err error) bool {
	e := Of(err)
	return e != nil && e.Code == codes.Unimplemented
}

func cut(text string) string { return Shorten(text, MaxText) }

// Shorten cuts a text that others have written to about most bytes. It also mends what is not UTF-8, which the API server
// would refuse whole.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return strings.ToValidUTF8(text, "�")
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// Terminal marks an error that no retry can cure: the object has to change first. The queue loop does
// not try it again by itself.
func Terminal(err error) error { return &terminal{err} }

type terminal struct{ error }

func (t *terminal) Unwrap() error { return t.error }

// IsTerminal tells whether an error was marked by Terminal.
func IsTerminal(err error) bool {
	var t *terminal
	return errors.As(err, &t)
}

// Waiting marks an error that says only what is awaited: nothing has gone wrong, and whoever waits has been told.
func Waiting(err error) error { return &waiting{err} }

type waiting struct{ error }

func (w *waiting) Unwrap() error { return w.error }

// IsWaiting tells whether an error was marked by Waiting.
func IsWaiting(err error) bool {
	var w *waiting
	return errors.As(err, &w)
}

// RetryAfter asks the queue loop to try again after a fixed time instead of its growing one.
func RetryAfter(err error, after time.Duration) error { return &retryAfter{err, after} }

type retryAfter struct {
	error
	after time.Duration
}

func (r *retryAfter) Unwrap() error { return r.error }

// RetryDelay returns the time that RetryAfter asked for.
func RetryDelay(err error) (time.Duration, bool) {
	var r *retryAfter
	if errors.As(err, &r) {
		return r.after, true
	}
	return 0, false
}
