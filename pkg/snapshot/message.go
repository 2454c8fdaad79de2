// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"strings"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
)

const (
	firstFailure = "Failed to create snapshot: "
	laterFailure = "Failed to check and update snapshot content: "
)

// maxMessage bounds the errors in statuses. Those of a driver are short by now; those of an API server may repeat what was
// sent, and those of webhooks say what they like.
const maxMessage = 4 << 10

// bounded is what is written of an error into a status. What tells only which try it was stands before it, so that two cut
// errors can still be told to be the same.
func bounded(message string) string { return fault.Shorten(message, maxMessage) }

// isSameCause is fault.IsSameMessage for errors of contents, whose first words tell only which try it was.
func isSameCause(a, b string) bool { return fault.IsSameMessage(causeOf(a), causeOf(b)) }

func causeOf(message string) string {
	return strings.TrimPrefix(strings.TrimPrefix(message, firstFailure), laterFailure)
}
