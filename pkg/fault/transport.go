// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"regexp"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// cutOff are the words for a stream that was ended with a reason of HTTP/2, whatever the driver is doing.
const cutOff = "stream terminated by RST_STREAM"

func isCut(text string) bool { return strings.Contains(text, cutOff) }

// transport finds the words that gRPC's libraries themselves put into a status, at either end of the socket: a message that
// is larger than what they take, and a stream that was cut with a reason of HTTP/2.
var transport = regexp.MustCompile(`(?i)message (?:after decompression )?larger than max|grpc: message too large|` + cutOff)

// isOfTransport tells that a status is no answer of the driver although it has the code of one. The code is then mostly
// ResourceExhausted, and a driver that made a volume and described it in too many words would be taken for one that has no
// room: the volume would be forgotten. There is no other sign than the text; a driver that writes these words itself is only
// asked once more. Nor does the text tell which side says so. "Trying to send" is what a request that never left would get as
// well, but this side's bound is 2 GiB: who says it is the driver's side, of an answer, or of a call of its own.
func isOfTransport(state *status.Status) bool { return transport.MatchString(state.Message()) }

// undialled are gRPC's words when nobody listens at the socket.
const undialled = "transport: Error while dialing"

// IsUnreached tells that a call never left: the driver has turned nothing away, and says nothing about how much it bears.
func IsUnreached(err error) bool {
	e := Of(err)
	return e != nil && e.Code == codes.Unavailable && strings.Contains(e.Text, undialled)
}

// Unreached is the error of a call that this side has not let out. It reads like gRPC's own, and IsUnreached holds of it.
func Unreached(why string) error { return status.New(codes.Unavailable, undialled+": "+why).Err() }

// IsUnreachedIn tells the same of a message that carries the error.
func IsUnreachedIn(message string) bool {
	return CodeIn(message) == codes.Unavailable.String() && strings.Contains(message, undialled)
}
