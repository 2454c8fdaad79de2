// SPDX-License-Identifier: Apache-2.0

package capacity

import "testing"

// TestLack: the first piece that is missing is told, and nothing where nothing is. One that told of classes first would send
// people away from a driver that runs nowhere.
func TestLack(t *testing.T) {
	const driver = "d.example"
	for name, c := range map[string]struct {
		stock Stock
		want  string
	}{
		"all is there": {Stock{Nodes: 2, Segments: 1, Classes: 3, Published: 1}, ""},
		"nothing at all": {Stock{},
			`no CSINode lists driver "d.example": see that its node plugin runs on the nodes and registers there, which node-driver-registrar does`},
		"labels": {Stock{Nodes: 2, Keys: []string{"rack", "zone"}, Classes: 1, Published: 1},
			`CSINodes list driver "d.example" with the topology keys [rack zone], and no Node has labels for all of these: look at what NodeGetInfo answers, and at the labels of the nodes`},
		"classes": {Stock{Nodes: 2, Segments: 1}, `no StorageClass has the provisioner "d.example"`},
		"late binding": {Stock{Nodes: 2, Segments: 1, Classes: 1},
			`each StorageClass of driver "d.example" binds at once: use volumeBindingMode WaitForFirstConsumer in a new one, or --capacity-for-immediate-binding`},
	} {
		c.stock.Driver = driver
		if got := Lack(c.stock); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
