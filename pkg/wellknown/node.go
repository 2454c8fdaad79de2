// SPDX-License-Identifier: Apache-2.0

package wellknown

import "strings"

// NodeLabel is the value of a label that names a node: the name itself, or its beginning and a hash of it where
// the name is too long. Old sidecars know nothing of the latter; they could not serve such nodes at all.
func NodeLabel(node string) string {
	if len(node) <= maxLabelValue {
		return node
	}
	digits := "-" + hash32(node)
	return node[:maxLabelValue-len(digits)] + digits
}

// NodeOfIdentity is the node whose process made a volume, by the identity that is noted in it:
// <milliseconds>-<number>-<driver>-<node>. It is empty when the process served the whole cluster.
func NodeOfIdentity(identity, driver string) string {
	parts := strings.SplitN(identity, "-", 3)
	if len(parts) < 3 {
		return ""
	}
	node, _ := strings.CutPrefix(parts[2], driver+"-")
	if node == parts[2] {
		return ""
	}
	return node
}
