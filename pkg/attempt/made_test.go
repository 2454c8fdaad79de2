// SPDX-License-Identifier: Apache-2.0

package attempt_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/attempt"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// overtaken is a process whose first object is full, and the one that has taken over. What the first puts on record then needs an object that the
// other has not seen.
func overtaken(t *testing.T, h *kit.Harness) (a, b *process) {
	t.Helper()
	a = begin(t, h, "a", smallObjects)
	put(t, h, a, "full", text(filling))
	b = begin(t, h, "b", smallObjects)
	if err := a.Put(h.Ctx, "u1", text(filling)); !errors.Is(err, attempt.ErrForeign) {
		t.Fatal("two write:", err)
	}
	return a, b
}

// TestOvertakenMakesAnObject: a process that was overtaken makes a further object before it finds that out. The other makes the volume of the same
// claim, somebody keeps it, and all is settled. Catches a creation that brings entries along: whoever has taken over has no resource version to
// refuse it by, and does not know it, and the process after it would resume what is over and delete what was kept.
func TestOvertakenMakesAnObject(t *testing.T) {
	h := kit.New(t)
	_, b := overtaken(t, h)
	b.Remove("full")
	if err := b.Sweep(h.Ctx); err != nil {
		t.Fatal(err)
	}
	put(t, h, b, "u1", text(filling))
	if err := b.Settle(h.Ctx, "u1"); err != nil {
		t.Fatal(err)
	}
	if c := begin(t, h, "c", smallObjects); len(c.found) > 0 {
		t.Error("what was settled is resumed:", c.found)
	}
}

// TestObjectOfTheOvertaken: such an object is there when the rightful process needs it. Catches one that takes its epoch for the sign that it was
// overtaken itself: then nobody works.
func TestObjectOfTheOvertaken(t *testing.T) {
	h := kit.New(t)
	a, b := overtaken(t, h)
	// Somebody puts an entry there, which is all that may be known of a volume.
	kit.Edit(h.API, second, func(c *corev1.ConfigMap) { c.Data["junk"] = "\nx" })
	put(t, h, b, "u2", text(filling))
	wantData(t, h, second, map[string]string{"epoch": "2 b", "u2": "\n" + filling, "junk": "\nx"})
	if err := a.Put(h.Ctx, "u3", text("x")); !errors.Is(err, attempt.ErrForeign) {
		t.Error("two write:", err)
	}
	if c := begin(t, h, "c"); len(c.found) != 3 {
		t.Error("found", c.found)
	}
}

// TestRemovedObjectOfTheOvertaken: a further object is removed by hand after another process has taken over, and the one before it makes it anew.
// Catches one that remembers the proof of the object that is gone, and so works on where nobody looks.
func TestRemovedObjectOfTheOvertaken(t *testing.T) {
	h := kit.New(t)
	a := begin(t, h, "a", smallObjects)
	put(t, h, a, "full", text(filling))
	put(t, h, a, "u1", text(filling))
	begin(t, h, "b", smallObjects)
	kit.Remove[*corev1.ConfigMap](h.API, second)
	if err := a.Put(h.Ctx, "u1", text(filling+"grown")); !errors.Is(err, attempt.ErrForeign) {
		t.Error("two write:", err)
	}
	wantData(t, h, second, map[string]string{"epoch": "1 a"})
}

// TestOvertakenWhileItBegins: another process begins while one takes over object after object. Catches one that goes on with what the other has begun,
// and that has ended the other's writing by its older epoch.
func TestOvertakenWhileItBegins(t *testing.T) {
	h := kit.New(t)
	old := begin(t, h, "old", smallObjects)
	put(t, h, old, "full", text(filling))
	put(t, h, old, "u1", text(filling))
	var b *process
	h.API.Script(kit.Rule{Verb: "get", Resource: configMaps, Name: second.Name, Times: 1, Meanwhile: func() { b = begin(t, h, "b", smallObjects) }})
	a := newProcess(h, "a", smallObjects)
	if err := a.Begin(h.Ctx); !errors.Is(err, attempt.ErrForeign) || len(a.found) > 0 {
		t.Errorf("%v; told of %v", err, a.found)
	}
	put(t, h, b, "u1", text(filling+"grown"))
	if d := data(h, second); d["epoch"] != "3 b" || !strings.HasSuffix(d["u1"], "grown") {
		t.Error(d)
	}
}

// TestLateCreation: the creation of an object has no answer, and arrives when another process has begun. Catches a creation that brings entries
// along, as they turn up after their claim was settled.
func TestLateCreation(t *testing.T) {
	for _, uid := range []types.UID{"full", "u1"} { // the first object, removed by hand; a further one
		h := kit.New(t)
		a := &slow{API: h.API}
		p := begin(t, h, "a", smallObjects, func(o *attempt.Options) { o.Client = a })
		put(t, h, p, "full", text(filling))
		if uid == "full" {
			kit.Remove[*corev1.ConfigMap](h.API, first)
		}
		a.holds = "create"
		if err := p.Put(h.Ctx, uid, text(filling+"x")); err == nil {
			t.Fatal("acknowledged without an answer")
		}
		if uid == "u1" {
			begin(t, h, "b", smallObjects)
		}
		if err := a.arrive(); err != nil {
			t.Fatal(err)
		}
		if c := begin(t, h, "c"); strings.Contains(strings.Join(c.found, " "), string(uid)) {
			t.Errorf("%s: what was never acknowledged is found: %v", uid, c.found)
		}
	}
}
