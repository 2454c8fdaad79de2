// SPDX-License-Identifier: Apache-2.0

package snapshot

import "strings"

// BeingRestored is what users are told while the deletion of a snapshot waits for claims. Without claims it
// waits for the provisioner alone.
func BeingRestored(claims []string) string {
	if len(claims) == 0 {
		return "Snapshot is being used to restore a PVC that does not wait for it any more: the provisioner may still read it, as its finalizer says"
	}
	return "Snapshot is being used to restore a PVC: " + strings.Join(claims, ", ")
}
