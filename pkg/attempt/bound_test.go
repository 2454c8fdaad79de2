// SPDX-License-Identifier: Apache-2.0

package attempt_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/attempt"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestRoom: the record is bounded in every object and as a whole; beyond that no new work is begun, and the user is told why. Catches a record
// that grows until the API server refuses it, with all entries in it.
func TestRoom(t *testing.T) {
	h := kit.New(t)
	a := begin(t, h, "a", smallObjects)
	for i := range 8 {
		put(t, h, a, nth(i), text(filling))
	}
	var refused *attempt.RefusedError
	err := a.Put(h.Ctx, nth(8), text(filling))
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "without a certain outcome") || refused.Advice() == "" {
		t.Error(err)
	}
	if err := a.Put(h.Ctx, nth(3), text(filling+"grown")); err != nil {
		t.Error("an entry that is there may grow: ", err)
	}
	for _, object := range kit.All[*corev1.ConfigMap](h.API) {
		if len(object.Data) != 2 {
			t.Error("not spread over the objects", object.Name, len(object.Data))
		}
	}
	if err := a.Settle(h.Ctx, nth(0)); err != nil {
		t.Error(err)
	}
	put(t, h, a, nth(8), text(filling))
	// The next process finds every one of them, and each once.
	if b := begin(t, h, "b"); len(b.found) != 8 {
		t.Error(b.found)
	}
	if err := begin(t, h, "c").Put(h.Ctx, "large", text(strings.Repeat("x", 300<<10))); !errors.As(err, &refused) {
		t.Error(err)
	}
}

// TestGrowth: an entry that just fitted may become longer by what happens to its volume, such as its removal. Catches a bound that leaves
// a wrong volume at the driver, because nobody may write down that it is being removed.
func TestGrowth(t *testing.T) {
	h := kit.New(t)
	a := begin(t, h, "a")
	put(t, h, a, "u1", text(strings.Repeat("x", 256<<10)))
	put(t, h, a, "u1", text(strings.Repeat("x", 256<<10+16<<10)))
	put(t, h, a, "u1", text(strings.Repeat("x", 256<<10+31<<10)))
	var refused *attempt.RefusedError
	if err := a.Put(h.Ctx, "u1", text(strings.Repeat("x", 300<<10))); !errors.As(err, &refused) {
		t.Error("it grows without a bound:", err)
	}
	if err := a.Put(h.Ctx, "u2", text(strings.Repeat("x", 256<<10+1))); !errors.As(err, &refused) {
		t.Error("a new one has that room:", err)
	}
}

// TestNoRight: without the right nothing is recorded and the work goes on; when it comes, what is open is written and what was there
// is found. Catches one that waits for a right that may never come, and one that needs a restart.
func TestNoRight(t *testing.T) {
	h := kit.New(t)
	put(t, h, begin(t, h, "old"), "u1", text("one"))
	release := h.API.Deny("patch", configMaps)
	b := begin(t, h, "b")
	put(t, h, b, "u2", text("two"))
	b.Remove("u2")
	put(t, h, b, "u3", text("three"))
	if err := b.Settle(h.Ctx, "u2"); err != nil {
		t.Error(err)
	}
	wantData(t, h, first, map[string]string{"epoch": "1 old", "u1": "\none"})
	release()
	if err := b.Begin(h.Ctx); err != nil {
		t.Fatal(err)
	}
	if err := b.Sweep(h.Ctx); err != nil {
		t.Error(err)
	}
	wantData(t, h, first, map[string]string{"epoch": "2 b", "u1": "\none", "u3": "\nthree"})
	if len(b.found) != 1 || b.found[0] != "u1=one[]" {
		t.Error(b.found)
	}
	release = h.API.Deny("patch", configMaps)
	put(t, h, b, "u4", text("four")) // the right is taken away in the middle
	if err := b.Settle(h.Ctx, "u1"); err == nil {
		t.Error("an entry that stays on record counts as settled")
	}
	// A refusal is a certain answer: what is not on record does not stay for it.
	if err := b.Settle(h.Ctx, "u9"); err != nil {
		t.Errorf("a volume that is on no record stays: %v", err)
	}
	release()
	if err := b.Begin(h.Ctx); err != nil {
		t.Error(err)
	}
	put(t, h, b, "u5", text("five"))
	wantData(t, h, first, map[string]string{"epoch": "3 b", "u3": "\nthree", "u4": "\nfour", "u5": "\nfive"})

	// Meanwhile another process had the right: then it has the work.
	release = h.API.Deny("patch", configMaps)
	put(t, h, b, "u6", text("six"))
	release()
	begin(t, h, "c")
	if err := b.Begin(h.Ctx); !errors.Is(err, attempt.ErrForeign) {
		t.Error(err)
	}
}

// FuzzFound: whatever somebody writes into the objects, it is read without harm.
func FuzzFound(f *testing.F) {
	for _, seed := range []string{"", "\n", "a,b\nbody", "a", ",,\n", "part.\nx"} {
		f.Add("u1", seed, "a", seed)
	}
	f.Fuzz(func(t *testing.T, key, value, part, text string) {
		h := kit.New(t)
		h.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: first.Namespace, Name: first.Name}, Data: map[string]string{"epoch": value, key: value, "part." + part: text}})
		a := begin(t, h, "a")
		put(t, h, a, "u2", attempt.Document{Body: "two"})
		if err := a.Settle(h.Ctx, types.UID(key)); err != nil {
			t.Error(err)
		}
	})
}
