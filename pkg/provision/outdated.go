// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"fmt"
	"strings"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Outdated begins what is said of a request that would be another one by now. It is repeated all the same, since only the very same request
// can find out what became of the first one; who waits for the volume has to know that, and how to get out of it.
const Outdated = "the same request is repeated until the driver gives a certain answer, whatever has changed since: "

// repeated is the error of an attempt that is asked again unchanged.
func (a Answer) repeated() error {
	if a.isAbandoned() {
		return a.Err
	}
	var changed []string
	class, node := ClassName(a.Claim), a.Attempt.Node
	switch {
	case a.Attempt.Class == "": // made by a process that did not note it
	case a.Class == nil:
		changed = append(changed, fmt.Sprintf("StorageClass %q does not exist any more", class))
	case a.Class.UID != a.Attempt.Class:
		changed = append(changed, fmt.Sprintf("StorageClass %q was made anew, and the request is what the old one said", class))
	}
	if a.Topology != nil && a.Attempt.Topology && node != "" {
		if _, known := a.Topology.Labels(node); !known {
			changed = append(changed, fmt.Sprintf("the request is for node %q, which does not exist any more (annotation %s of the claim)", node, wellknown.AnnSelectedNode))
		}
	}
	if len(changed) == 0 {
		return a.Err
	}
	return advise(a.Err, "%s%s; delete this claim and make it anew: the new one goes by the class and the node of then, and does not wait for this request, which is brought to its end without the claim",
		Outdated, strings.Join(changed, ", and "))
}
