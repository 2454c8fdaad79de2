// SPDX-License-Identifier: Apache-2.0

package snapshot

import "strings"

// BeingRestored is what users are told while the deletion of a snapshot waits for claims.
func BeingRestored(claims []string) string {
	return "Snapshot is being used to restore a PVC: " + strings.Join(claims, ", ")
}
