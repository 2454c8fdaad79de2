// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"regexp"
	"strings"
)

// counters finds what changes from try to try without telling anything new: request ids, times, counters.
var counters = regexp.MustCompile(`(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b(?:0x)?[0-9a-f]*[0-9][0-9a-f]*\b|[0-9]+`)

// IsSameMessage tells that two errors say the same to a reader. A driver that puts a request id into its
// errors would otherwise cost a write and an event at every try.
func IsSameMessage(a, b string) bool {
	return a == b || counters.ReplaceAllString(a, "#") == counters.ReplaceAllString(b, "#")
}

const (
	firstFailure = "Failed to create snapshot: "
	laterFailure = "Failed to check and update snapshot content: "
)

// isSameCause is IsSameMessage for errors of contents, whose first words tell only which try it was.
func isSameCause(a, b string) bool { return IsSameMessage(causeOf(a), causeOf(b)) }

func causeOf(message string) string {
	return strings.TrimPrefix(strings.TrimPrefix(message, firstFailure), laterFailure)
}
