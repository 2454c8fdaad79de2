// SPDX-License-Identifier: Apache-2.0

package capacity

import "fmt"

// Stock is what there is to publish for.
type Stock struct {
	Driver string
	// Nodes list the driver in their CSINode, with Keys, and Segments are those that this makes with the labels of the Nodes.
	Nodes, Segments int
	Keys            []string
	// Classes are those of the driver, and Published those of them that are published.
	Classes, Published int
}

// Lack says which piece is missing where there is nothing to publish, and what would help; it is empty where there is something.
// The order is that in which the pieces come in an installation.
func Lack(s Stock) string {
	switch {
	case s.Segments > 0 && s.Published > 0:
		return ""
	case s.Nodes == 0:
		return fmt.Sprintf("no CSINode lists driver %q: see that its node plugin runs on the nodes and registers there, which node-driver-registrar does", s.Driver)
	case s.Segments == 0:
		return fmt.Sprintf("CSINodes list driver %q with the topology keys %v, and no Node has labels for all of these: look at what NodeGetInfo answers, and at the labels of the nodes", s.Driver, s.Keys)
	case s.Classes == 0:
		return fmt.Sprintf("no StorageClass has the provisioner %q", s.Driver)
	default:
		return fmt.Sprintf("each StorageClass of driver %q binds at once: use volumeBindingMode WaitForFirstConsumer in a new one, or --capacity-for-immediate-binding", s.Driver)
	}
}
