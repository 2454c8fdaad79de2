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

// isSameCause is fault.IsSameMessage for errors of contents, whose first words tell only which try it was.
func isSameCause(a, b string) bool { return fault.IsSameMessage(causeOf(a), causeOf(b)) }

func causeOf(message string) string {
	return strings.TrimPrefix(strings.TrimPrefix(message, firstFailure), laterFailure)
}
