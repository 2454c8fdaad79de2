// SPDX-License-Identifier: Apache-2.0

package wellknown

import (
	"fmt"
	"hash/fnv"
)

// centralManager is who manages capacity objects where one process serves the whole cluster.
const centralManager = "external-provisioner"

// maxLabelValue is how long the value of a label may be.
const maxLabelValue = 63

// CapacityManagedBy is the value of LabelCapacityManagedBy for a process that serves one node, or for the
// one that serves all, whose node is empty. What is too long is cut, as such sidecars have always cut it:
// objects that an older one has made are found again.
func CapacityManagedBy(node string) string {
	if node == "" {
		return centralManager
	}
	whole := centralManager + "-" + node
	if len(whole) <= maxLabelValue {
		return whole
	}
	// Two dashes and the digits of the hash.
	if left := maxLabelValue - 10 - len(node); left > 0 {
		return centralManager[:left] + "-" + hash32(centralManager) + "-" + node
	}
	return centralManager + "-" + hash32(whole)
}

func hash32(text string) string {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(text)) // never fails
	return fmt.Sprintf("%08x", sum.Sum32())
}
