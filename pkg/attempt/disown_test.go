// SPDX-License-Identifier: Apache-2.0

package attempt_test

import (
	"testing"

	"github.com/csi-tandem/csi-tandem/pkg/attempt"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestDisownedAndOwned: a process without the right to the record settles a claim that may be on it, and then the right comes. Catches one that settles
// before the next process can know of it, and one that counts as one of those who keep the record before what was settled is off, or never again.
func TestDisownedAndOwned(t *testing.T) {
	h := kit.New(t)
	before := begin(t, h, "a")
	put(t, h, before, "over", text("x"))
	put(t, h, before, "open", text("y"))
	grant := h.API.Deny("", configMaps)
	told, isOff, owned := 0, false, 0
	p := begin(t, h, "b", func(o *attempt.Options) {
		o.Disown, o.Own = func() bool { told++; return isOff }, func() { owned++ }
	})
	if err := p.Settle(h.Ctx, "over"); err == nil || told != 1 {
		t.Errorf("settled, and the lease does not tell yet: %v, told %d times", err, told)
	}
	isOff = true
	if err := p.Settle(h.Ctx, "over"); err != nil {
		t.Error(err)
	}
	grant()
	if err := p.Begin(h.Ctx); err != nil {
		t.Fatal(err)
	}
	if owned != 0 {
		t.Error("owned, while what is over is on record")
	}
	for range 3 {
		if err := p.Sweep(h.Ctx); err != nil {
			t.Fatal(err)
		}
	}
	if _, there := data(h, objectOf(0))["over"]; there || owned != 1 {
		t.Errorf("on record: %v, owned %d times", there, owned)
	}
}
