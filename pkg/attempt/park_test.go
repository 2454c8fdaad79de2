// SPDX-License-Identifier: Apache-2.0

package attempt_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestUnreadEntriesStay: what a newer process has written stays as it wrote it, parts included, also when its claim begins anew; the next
// process finds both. Catches a record that writes over what it does not understand, or tidies up what belongs to it.
func TestUnreadEntriesStay(t *testing.T) {
	h := kit.New(t)
	put(t, h, begin(t, h, "newer"), "u1", text("soon"))
	const alien = "q,z,\nnewer"
	kit.Edit(h.API, first, func(c *corev1.ConfigMap) {
		c.Data = map[string]string{"epoch": "1 newer", "u1": alien, "u2": "\nplain", "part.q": "Q", "part.of-another-form": "X"}
	})
	a := begin(t, h, "a")
	a.ParkUnread("u1")
	a.Remove("u1") // its claim has ended here, which says nothing of what the entry is about
	put(t, h, a, "u1", text("anew", "P"))
	beside := map[string]string{
		"epoch": "2 a", "u1": "p\nanew", "u1.unread-1": alien, "u2": "\nplain", "part.p": "P", "part.q": "Q", "part.of-another-form": "X",
	}
	wantData(t, h, first, beside)
	if n, parked := a.Len(); n != 3 || parked != 1 {
		t.Error(n, parked)
	}
	put(t, h, a, "u1", text("anew", "P", "R"))
	a.Remove("u1")
	if err := a.Sweep(h.Ctx); err != nil {
		t.Error(err)
	}
	delete(beside, "u1")
	beside["part.r"] = "R" // nobody knows whose a part is while there is an entry that is not understood
	wantData(t, h, first, beside)

	b := begin(t, h, "b")
	if d := cmp.Diff([]string{"u1=newer[Q]", "u2=plain[]"}, b.found); d != "" {
		t.Error(d)
	}
	b.ParkUnread("u1.unread-1")
	if err := b.Settle(h.Ctx, "u1"); err != nil {
		t.Error(err)
	}
	if d := data(h, first); d["u1.unread-1"] != "" || d["u2"] == "" {
		t.Error("a claim whose volume is at its end is on record still", d)
	}
}

// TestTwiceUnread: whatever is taken back and how often, no entry is lost.
func TestTwiceUnread(t *testing.T) {
	h := kit.New(t)
	for _, body := range []string{"one", "two", "three"} {
		p := begin(t, h, body)
		for _, key := range []string{"u1", "u1.unread-1", "u1.unread-2"} {
			if data(h, first)[key] != "" {
				p.ParkUnread("u1")
			}
		}
		put(t, h, p, "u1", text(body))
	}
	b := begin(t, h, "b")
	if d := cmp.Diff([]string{"u1=one[]", "u1=three[]", "u1=two[]"}, b.found); d != "" {
		t.Error(d)
	}
	b.Remove("u1")
	if err := b.Sweep(h.Ctx); err != nil {
		t.Error(err)
	}
	wantData(t, h, first, map[string]string{"epoch": "4 b"})
}

// TestAllOfAClaimIsParked: an entry from before others led is gone on with, as its claim is there; what was written for it then is beside it when
// nothing more can be found out, and a person takes both off. Catches a record that parks the one only, puts the other back, and never gets empty.
func TestAllOfAClaimIsParked(t *testing.T) {
	h := kit.New(t)
	a := lead(h, "l", 1, 1)
	a.wants(t, h, "", "")
	put(t, h, a.process, "u1", text("one"))
	b := lead(h, "l", 3, 3)
	b.wants(t, h, "", "u1=one")
	put(t, h, b.process, "u1", text("one"))
	put(t, h, b.process, "u10", text("of another claim"))
	b.Park("u1")
	if n, parked := b.Len(); n != 3 || parked != 2 {
		t.Error("not all of the claim is parked, or more:", n, parked)
	}
	kit.Edit(h.API, first, func(c *corev1.ConfigMap) {
		delete(c.Data, "u1")
		delete(c.Data, "u1.between")
	})
	put(t, h, b.process, "u2", text("two"))
	epoch := data(h, first)["epoch"]
	wantData(t, h, first, map[string]string{"epoch": epoch, "u2": "\ntwo", "u10": "\nof another claim"})
}
