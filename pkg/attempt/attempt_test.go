// SPDX-License-Identifier: Apache-2.0

package attempt_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/attempt"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const configMaps = "configmaps"

var (
	first  = kube.Key{Namespace: "home", Name: "record-0"}
	second = kube.Key{Namespace: "home", Name: "record-1"}
	late   = apierrors.NewTimeoutError("late", 1)
)

// process is the record of one process, with what it was told of.
type process struct {
	*attempt.Record
	found []string
}

func newProcess(h *kit.Harness, holder string, edits ...func(*attempt.Options)) *process {
	p := &process{}
	options := attempt.Options{
		Client: h.API, Clock: h.Clock, Namespace: first.Namespace, Name: "record", Holder: holder,
		Found: func(_ context.Context, entries []attempt.Entry) {
			for _, e := range entries {
				p.found = append(p.found, fmt.Sprintf("%s=%s%v", e.UID, e.Body, slices.Sorted(maps.Values(e.Parts))))
			}
			slices.Sort(p.found)
		},
	}
	for _, edit := range edits {
		edit(&options)
	}
	p.Record = attempt.New(options)
	return p
}

// begin makes the record of a process and begins it.
func begin(t *testing.T, h *kit.Harness, holder string, edits ...func(*attempt.Options)) *process {
	t.Helper()
	p := newProcess(h, holder, edits...)
	if err := p.Begin(h.Ctx); err != nil {
		t.Fatal(err)
	}
	return p
}

func text(body string, parts ...string) attempt.Document {
	d := attempt.Document{Body: body, Parts: map[string]string{}}
	for _, p := range parts {
		d.Parts[strings.ToLower(p)] = p
	}
	return d
}

func put(t *testing.T, h *kit.Harness, p *process, uid types.UID, d attempt.Document) {
	t.Helper()
	if err := p.Put(h.Ctx, uid, d); err != nil {
		t.Fatal(err)
	}
}

// data is what one object of the record holds.
func data(h *kit.Harness, key kube.Key) map[string]string {
	object, ok := kit.Read[*corev1.ConfigMap](h.API, key)
	if !ok {
		return nil
	}
	return object.Data
}

func wantData(t *testing.T, h *kit.Harness, key kube.Key, want map[string]string) {
	t.Helper()
	if d := cmp.Diff(want, data(h, key)); d != "" {
		t.Errorf("%s (-want +got):\n%s", key.Name, d)
	}
}

func writes(h *kit.Harness) (n int) {
	for _, r := range h.API.Requests() {
		if r.Resource == configMaps && r.Verb != "get" {
			n++
		}
	}
	return n
}

// TestLife: what is put on record is there when Put returns, and found by the next process, under a new epoch.
func TestLife(t *testing.T) {
	h := kit.New(t)
	a := begin(t, h, "a")
	put(t, h, a, "u1", text("one", "P", "Q"))
	put(t, h, a, "u2", text("two", "Q"))
	wantData(t, h, first, map[string]string{"epoch": "1 a", "u1": "p,q\none", "u2": "q\ntwo", "part.p": "P", "part.q": "Q"})
	before := writes(h)
	put(t, h, a, "u1", text("one", "P", "Q"))
	if writes(h) != before {
		t.Error("what is on record as it is was written again")
	}
	a.Remove("u1")
	wantData(t, h, first, map[string]string{"epoch": "1 a", "u1": "p,q\none", "u2": "q\ntwo", "part.p": "P", "part.q": "Q"})
	put(t, h, a, "u3", text("three"))
	wantData(t, h, first, map[string]string{"epoch": "1 a", "u2": "q\ntwo", "u3": "\nthree", "part.q": "Q"})
	b := begin(t, h, "b")
	if d := cmp.Diff([]string{"u2=two[Q]", "u3=three[]"}, b.found); d != "" {
		t.Error("found", d)
	}
	if err := b.Settle(h.Ctx, "u2"); err != nil {
		t.Error(err)
	}
	wantData(t, h, first, map[string]string{"epoch": "2 b", "u3": "\nthree"})
	b.Remove("u3")
	if err := b.Sweep(h.Ctx); err != nil {
		t.Error(err)
	}
	wantData(t, h, first, map[string]string{"epoch": "2 b"})
	before = writes(h)
	for _, err := range []error{b.Settle(h.Ctx, "u2"), b.Sweep(h.Ctx)} {
		if err != nil || writes(h) != before {
			t.Error("nothing was to be written", err)
		}
	}
}

// TestLostAnswers: an answer that does not come leaves it open whether the write arrived. A document counts only when it was
// acknowledged, and one that does not count is taken off again. Catches a record that trusts what it last heard of an object.
func TestLostAnswers(t *testing.T) {
	type scripted func(*kit.API)
	lose := func(verb string) scripted {
		return func(a *kit.API) { a.Lose(verb, configMaps, late, 1) }
	}
	fail := func(verb string) scripted { return func(a *kit.API) { a.Fail(verb, configMaps, late, 1) } }
	for name, script := range map[string]scripted{"done": lose("patch"), "not done": fail("patch")} {
		t.Run("put, "+name, func(t *testing.T) {
			h := kit.New(t)
			a := begin(t, h, "a")
			put(t, h, a, "u0", text("zero"))
			script(h.API)
			if err := a.Put(h.Ctx, "u1", text("one")); err == nil {
				t.Fatal("acknowledged without an answer")
			}
			if err := a.Sweep(h.Ctx); err != nil {
				t.Error(err)
			}
			wantData(t, h, first, map[string]string{"epoch": "1 a", "u0": "\nzero"})
			script(h.API)
			_ = a.Put(h.Ctx, "u1", text("one"))
			put(t, h, a, "u1", text("one"))
			wantData(t, h, first, map[string]string{"epoch": "1 a", "u0": "\nzero", "u1": "\none"})
			script(h.API)
			_ = a.Put(h.Ctx, "u1", text("other"))
			if err := a.Sweep(h.Ctx); err != nil {
				t.Error(err)
			}
			wantData(t, h, first, map[string]string{"epoch": "1 a", "u0": "\nzero", "u1": "\none"})
		})
		t.Run("settle, "+name, func(t *testing.T) {
			h := kit.New(t)
			a := begin(t, h, "a")
			put(t, h, a, "u1", text("one"))
			script(h.API)
			if err := a.Settle(h.Ctx, "u1"); err == nil {
				t.Error("acknowledged without an answer")
			}
			if err := a.Settle(h.Ctx, "u1"); err != nil {
				t.Error(err)
			}
			wantData(t, h, first, map[string]string{"epoch": "1 a"})
		})
	}
	for name, script := range map[string]scripted{"create lost": lose("create"), "create failed": fail("create"), "read failed": fail("get")} {
		t.Run("begin, "+name, func(t *testing.T) {
			h := kit.New(t)
			script(h.API)
			a := newProcess(h, "a")
			for a.Begin(h.Ctx) != nil {
			}
			put(t, h, a, "u1", text("one"))
			if d := data(h, first); d["u1"] != "\none" {
				t.Error(d)
			}
		})
	}
	t.Run("begin on what is there, patch lost", func(t *testing.T) {
		h := kit.New(t)
		put(t, h, begin(t, h, "a"), "u1", text("one"))
		lose("patch")(h.API)
		b := newProcess(h, "b")
		for b.Begin(h.Ctx) != nil {
		}
		if len(b.found) != 1 || data(h, first)["epoch"] != "3 b" {
			t.Error(b.found, data(h, first))
		}
	})
}

// TestEditedByHand: what people do to the objects neither ends the work nor loses an entry, and what they write is not taken for
// an entry of ours to throw away.
func TestEditedByHand(t *testing.T) {
	h := kit.New(t)
	a := begin(t, h, "a")
	put(t, h, a, "u1", text("one", "P"))
	kit.Edit(h.API, first, func(c *corev1.ConfigMap) {
		c.Labels = map[string]string{"x": "y"}
		delete(c.Data, "u1")
		delete(c.Data, "part.p")
	})
	put(t, h, a, "u2", text("two"))
	wantData(t, h, first, map[string]string{"epoch": "1 a", "u1": "p\none", "part.p": "P", "u2": "\ntwo"})
	kit.Remove[*corev1.ConfigMap](h.API, first)
	put(t, h, a, "u3", text("three"))
	wantData(t, h, first, map[string]string{"epoch": "1 a", "u1": "p\none", "part.p": "P", "u2": "\ntwo", "u3": "\nthree"})

	kit.Edit(h.API, first, func(c *corev1.ConfigMap) {
		c.Data = map[string]string{"epoch": "nonsense", "junk": "no line", "u1": "gone,,\none", "part.unused": "x"}
	})
	b := begin(t, h, "b")
	if d := cmp.Diff([]string{"junk=no line[]", "u1=one[]"}, b.found); d != "" {
		t.Error(d)
	}
	put(t, h, b, "u4", text("four"))
	if d := data(h, first); d["epoch"] != "1 b" || d["junk"] == "" || d["part.unused"] != "" {
		t.Error(d)
	}
	if err := a.Put(h.Ctx, "u5", text("five")); !errors.Is(err, attempt.ErrForeign) {
		t.Error(err)
	}
}

// TestNotBegun: nothing can be put on a record that was not read.
func TestNotBegun(t *testing.T) {
	h := kit.New(t)
	a := newProcess(h, "a")
	if err := a.Put(h.Ctx, "u1", text("one")); err == nil || writes(h) != 0 {
		t.Error("put without a beginning")
	}
	ended, cancel := context.WithCancel(h.Ctx)
	cancel()
	if err := a.Settle(ended, "u1"); !errors.Is(err, context.Canceled) {
		t.Error("settled without a beginning", err)
	}
}
