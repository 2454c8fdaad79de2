// SPDX-License-Identifier: Apache-2.0

package content

import (
	"testing"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestBeginsWithAllThereIs: what was heard while somebody else worked is looked at when the lead comes. Catches a room that has
// forgotten a content that is there then.
func TestBeginsWithAllThereIs(t *testing.T) {
	h, c := start(t)
	bound(h)
	h.Put(kit.NamedContent("of-another-driver", func(c *kube.Content) { c.Spec.Driver = "other.example" }))
	h.Settle()
	if keys := c.all(); len(keys) != 1 {
		t.Errorf("the work begins with %v, want our content", keys)
	}
}
