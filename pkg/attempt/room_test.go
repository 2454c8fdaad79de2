// SPDX-License-Identifier: Apache-2.0

package attempt_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/attempt"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// filling takes one of smallObjects for itself.
var filling = strings.Repeat("x", 80)

func smallObjects(o *attempt.Options) { o.ShardBytes = 100 }

func nth(i int) types.UID { return types.UID(string(rune('a' + i))) }

func objectOf(i int) kube.Key {
	return kube.Key{Namespace: "home", Name: "record-" + string(rune('0'+i))}
}

// crowded is a full record, some of whose entries are parked.
func crowded(t *testing.T, h *kit.Harness, parked ...int) *process {
	t.Helper()
	a := begin(t, h, "a", smallObjects)
	for i := range 8 {
		put(t, h, a, nth(i), text(filling))
	}
	for _, i := range parked {
		a.Park(nth(i))
		a.Park(nth(i))
	}
	return a
}

// TestParkedStays: what is parked may be all that is known of a volume at the driver, so a record that is full of it begins nothing new, tells
// how many stand in the way, and goes on when a person has taken one off. Catches a record in which the oldest parked entry gives way to a new
// one: its volume stays at the driver, and nobody knows of it any more.
func TestParkedStays(t *testing.T) {
	h := kit.New(t)
	a := crowded(t, h, 5, 2)
	var refused *attempt.RefusedError
	err := a.Put(h.Ctx, "new", text(filling))
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "2 of its entries are parked") ||
		!strings.Contains(refused.Advice(), "ConfigMaps record-0 to -7 in namespace home") {
		t.Fatal("a parked entry has given way:", err)
	}
	if n, parked := a.Len(); n != 8 || parked != 2 {
		t.Error(n, parked)
	}
	for _, i := range []int{2, 5} {
		if d := data(h, objectOf(i)); d[string(nth(i))] == "" {
			t.Error("what is parked is gone", d)
		}
	}
	kit.Edit(h.API, objectOf(5), func(c *corev1.ConfigMap) { delete(c.Data, string(nth(5))) })
	if err := a.Sweep(h.Ctx); err != nil {
		t.Fatal(err)
	}
	if n, parked := a.Len(); n != 7 || parked != 1 {
		t.Error("what was taken off by hand counts on", n, parked)
	}
	put(t, h, a, "new", text(filling))
	if d := data(h, objectOf(5)); d["new"] == "" || d[string(nth(5))] != "" {
		t.Error("what was taken off by hand is back", d)
	}
	if b := begin(t, h, "b", smallObjects); len(b.found) != 8 {
		t.Error(b.found)
	}
}

// TestWholeObjectRemoved: an object that is removed as a whole says nothing of the single entries, so that the parked ones are put back with those
// at work. Catches one that takes the end of the object for a decision about each.
func TestWholeObjectRemoved(t *testing.T) {
	h := kit.New(t)
	a := begin(t, h, "a")
	put(t, h, a, "u1", text("one"))
	put(t, h, a, "u2", text("two"))
	a.Park("u1")
	kit.Remove[*corev1.ConfigMap](h.API, first)
	put(t, h, a, "u3", text("three"))
	wantData(t, h, first, map[string]string{"epoch": "1 a", "u1": "\none", "u2": "\ntwo", "u3": "\nthree"})
}

// TestParkedWriteWithoutAnswer: a parked entry is filed anew beside another of its claim, and that write has no answer and has not arrived. Catches
// a record that takes it for removed by hand, because it is not there.
func TestParkedWriteWithoutAnswer(t *testing.T) {
	h := kit.New(t)
	put(t, h, begin(t, h, "newer"), "u1", text("newer"))
	a := begin(t, h, "a")
	a.ParkUnread("u1")
	h.API.Fail("patch", configMaps, late, 1)
	if err := a.Put(h.Ctx, "u1", text("anew")); err == nil {
		t.Fatal("acknowledged without an answer")
	}
	put(t, h, a, "u1", text("anew"))
	wantData(t, h, first, map[string]string{"epoch": "2 a", "u1": "\nanew", "u1.unread-1": "\nnewer"})
}

// TestPutBackByHand: an entry that somebody has taken out too early and puts back stays for the next process, with its parts, also when its claim
// has another by then; so does one that was never there. What this process has written without an answer is not taken for such a one. Catches a
// record that removes whatever it does not know.
func TestPutBackByHand(t *testing.T) {
	h := kit.New(t)
	a := begin(t, h, "a")
	put(t, h, a, "u1", text("one", "P"))
	put(t, h, a, "u2", text("two"))
	a.Park("u1")
	kit.Edit(h.API, first, func(c *corev1.ConfigMap) { delete(c.Data, "u1") })
	put(t, h, a, "u3", text("three"))
	wantData(t, h, first, map[string]string{"epoch": "1 a", "u2": "\ntwo", "u3": "\nthree"})

	h.API.Lose("patch", configMaps, late, 1)
	if err := a.Put(h.Ctx, "u4", text("four")); err == nil || data(h, first)["u4"] == "" {
		t.Fatal("the answer is not lost", err)
	}
	kit.Edit(h.API, first, func(c *corev1.ConfigMap) { c.Data["u1"], c.Data["part.p"], c.Data["junk"] = "p\none", "P", "x" })
	if err := a.Sweep(h.Ctx); err != nil {
		t.Error(err)
	}
	wantData(t, h, first, map[string]string{"epoch": "1 a", "u1": "p\none", "part.p": "P", "junk": "x", "u2": "\ntwo", "u3": "\nthree"})
	if n, parked := a.Len(); n != 4 || parked != 2 {
		t.Error(n, parked)
	}
	put(t, h, a, "u1", text("anew"))
	if d := data(h, first); d["u1.unread-1"] != "p\none" || d["u1"] != "\nanew" {
		t.Error(d)
	}
}

// TestLateRightToAFullRecord: what is begun without the right to write has its place where it would be, were the record empty. When the right comes,
// earlier processes turn out to have left as much there. Catches a record that fills one object beyond what the API server takes, which then
// refuses every write of it for as long as that lasts.
func TestLateRightToAFullRecord(t *testing.T) {
	h := kit.New(t)
	left := map[string]string{"epoch": "1 old"}
	for i := range 4 {
		left["left-"+string(nth(i))] = "\n" + strings.Repeat("x", 120<<10)
	}
	h.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: first.Namespace, Name: first.Name}, Data: left})
	release := h.API.Deny("patch", configMaps)
	a := begin(t, h, "a")
	for i := range 4 {
		put(t, h, a, nth(i), text(strings.Repeat("y", 120<<10)))
	}
	release()
	if err := a.Begin(h.Ctx); err != nil {
		t.Fatal(err)
	}
	if err := a.Sweep(h.Ctx); err != nil {
		t.Fatal(err)
	}
	entries := map[string]string{}
	for _, object := range kit.All[*corev1.ConfigMap](h.API) {
		size := 0
		for key, value := range object.Data {
			size += len(key) + len(value)
		}
		if size > 900<<10 {
			t.Errorf("%s has %d bytes", object.Name, size)
		}
		maps.Copy(entries, object.Data)
	}
	if len(entries) != 9 {
		t.Error(len(entries), "with the epoch")
	}
	if b := begin(t, h, "b"); len(b.found) != 8 {
		t.Error(len(b.found), "are found")
	}
}

// TestRunPutsBack: while nothing else is written, an object that somebody has removed comes back with what is open, and what somebody has taken out
// that was parked is not counted any more. Catches a process that finds out with its next write only, which may never come.
func TestRunPutsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, api := bubble(t)
		go func() { _ = r.Run(t.Context()) }()
		if err := r.AwaitBegun(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, uid := range []types.UID{"u1", "u2"} {
			if err := r.Put(t.Context(), uid, attempt.Document{Body: "x"}); err != nil {
				t.Fatal(err)
			}
		}
		r.Park("u1")
		kit.Remove[*corev1.ConfigMap](api, first)
		time.Sleep(time.Minute)
		if got := strings.Join(keysOf(api), " "); got != "u1 u2" {
			t.Fatalf("on record are %q", got)
		}
		kit.Edit(api, first, func(c *corev1.ConfigMap) { c.Data = map[string]string{"epoch": c.Data["epoch"]} })
		time.Sleep(time.Minute)
		if got := strings.Join(keysOf(api), " "); got != "u2" {
			t.Errorf("on record are %q", got)
		}
		if n, parked := r.Len(); n != 1 || parked != 0 {
			t.Error(n, parked)
		}
		before := len(api.Requests())
		r.Remove("u2")
		time.Sleep(10 * time.Minute)
		if n := len(api.Requests()) - before; n > 2 {
			t.Errorf("%d requests for a record without entries", n)
		}
	})
}
