// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Values of Options.RestoreSize.
const (
	RefuseSmaller = "refuse"
	GrowSmaller   = "grow"
)

// wantedSize is how many bytes the driver is asked for: what the claim asks for, or with GrowSmaller what
// its snapshot needs. Drivers round sizes up, so that the very claim a snapshot was taken from may ask for
// less than the snapshot needs.
func wantedSize(in ClaimInput) int64 {
	size, _ := requested(in.Claim)
	if in.RestoreSize != GrowSmaller {
		return size
	}
	return max(size, restoreSize(in.Source))
}

// restoreSize is how many bytes a restore needs at least, 0 when that is not known.
func restoreSize(source *SourceState) int64 {
	if source == nil || source.Snapshot == nil || source.Snapshot.Status == nil || source.Snapshot.Status.RestoreSize == nil {
		return 0
	}
	return source.Snapshot.Status.RestoreSize.Value()
}

// mayGrow tells that a claim may get more than it asks for: the flag says so, and the claim sets no limit.
func mayGrow(in ClaimInput, size int64) bool {
	limit, limited := in.Claim.Spec.Resources.Limits[corev1.ResourceStorage]
	return in.RestoreSize == GrowSmaller && (!limited || limit.Value() >= size)
}

// enlarge is what helps a claim that asks for less than its snapshot needs.
func enlarge(in ClaimInput, least int64) string {
	help := fmt.Sprintf("%sasks for %s or more", newClaim, resource.NewQuantity(least, resource.BinarySI))
	if in.RestoreSize == GrowSmaller {
		return help + ", with a limit that allows it"
	}
	return help + ", or start the provisioner with --restore-size=grow"
}
